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
  for (const row of document.querySelectorAll("tbody tr"))
    row.hidden = only.checked && !row.classList.contains("inside-differs");
}

const first = document.getElementById("first-that-differs");
if (first) slider.value = first.closest("[data-step]").dataset.step;
document.querySelector(".controls").hidden = false;
slider.addEventListener("input", choose);
only.addEventListener("change", filter);
choose();
