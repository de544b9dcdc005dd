"use strict";
const slider = document.getElementById("step");
const only = document.getElementById("only");
const steps = [...document.querySelectorAll("[data-step]")];

// Shows the chosen step, or all of them where there is no script.
function choose() {
  for (const each of steps) each.hidden = each.dataset.step !== slider.value;
  const words = steps.length ? steps[slider.value - 1].dataset.words : "no step";
  slider.setAttribute("aria-valuetext", words);
  document.querySelector("output").textContent = `${slider.value} of ${slider.max}`;
}

function filter() {
  for (const part of document.querySelectorAll("tbody")) {
    part.hidden = only.checked && !part.querySelector(".inside-differs");
    for (const row of part.rows)
      row.hidden = only.checked && !row.matches(".inside-differs, .inside-line");
  }
}

const first = document.getElementById("first-that-differs");
if (first) slider.value = first.closest("[data-step]").dataset.step;
document.querySelector(".controls").hidden = false;
slider.addEventListener("input", choose);
only.addEventListener("change", filter);
choose();
