"""What axe-core objects to in a page that a browser shows."""

# Marks each row of a table whose cells all look like cells of rows above it.
MARK_ALIKE = """() => { const seen = new Set();
  for (const row of document.querySelectorAll('tbody tr')) {
    const looks = [...row.querySelectorAll('*')].map(each =>
      [each.tagName, each.className, each.getAttribute('style'), each.getAttribute('scope')].join());
    row.toggleAttribute('data-alike', looks.every(each => seen.has(each)));
    looks.forEach(each => seen.add(each)); } }"""
# It keeps its place, and axe passes over it. To exclude it by name would be to look it up for each node again.
ALIKE_UNSEEN = "[data-alike], [data-alike] * { visibility: hidden !important }"


def violations(page, selectors=()) -> list[str]:
    """What axe-core objects to, in the whole page or in the parts named, one line for each rule.

    Of rows that look alike one is enough, and of what passes, one node: to test and describe them all takes far longer.
    """
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(MARK_ALIKE)
    here = [[each] for each in selectors if page.locator(each).count()]
    unseen = page.add_style_tag(content=ALIKE_UNSEEN)
    axe = Axe("0") if page.evaluate("() => 'axe' in window") else Axe()  # loaded once
    context = {"include": here} if here else None
    found = axe.run(page, context=context, options={"resultTypes": ["violations"]})
    unseen.evaluate("each => each.remove()")
    return [
        f"{each['id']}: {each['nodes'][0]['failureSummary']} {each['nodes'][0]['html'][:200]}"
        for each in found.response["violations"]
    ]
