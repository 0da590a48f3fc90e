// Shows the API of the server that sent this page and contacts no other server.

// The colours of the library have too little contrast for WCAG 2.2 AA, and some of its buttons are smaller than 24 pixels.
const customCss = `
  .light-mode {
    --scalar-color-2: #595959; --scalar-color-3: #676767; --scalar-sidebar-color-2: #595959;
    --scalar-color-blue: #0062a3; --scalar-color-green: #006b44; --scalar-color-red: #c40000;
    --scalar-color-orange: #b03a00; --scalar-color-yellow: #7a5b00; --scalar-color-purple: #6a2fb0;
  }
  .dark-mode { --scalar-color-3: #a0a0a0; --scalar-color-red: #ff7070; }
  .sidebar-search-placeholder { color: var(--scalar-color-2); }
  button[aria-expanded] { min-width: 24px; min-height: 24px; }
`

/** Adds what a screen reader or a keyboard needs and the library leaves out. */
function complete() {
  const set = (selector, attributes) => {
    for (const element of document.querySelectorAll(selector))
      for (const [name, value] of Object.entries(attributes(element))) element.setAttribute(name, value)
  }
  set('button[class*="copy-button"]:not([aria-label])', () => ({ 'aria-label': 'Copy' }))
  set('ul.endpoints:not([tabindex])', () => ({ tabindex: '0' }))
  set('[role="combobox"]:not([aria-expanded])', ({ dataset }) => ({
    'aria-expanded': 'false',
    'aria-label': dataset.placeholder ?? 'Value',
  }))
  for (const button of document.querySelectorAll('button[role="none"]')) button.removeAttribute('role')
}
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true })

globalThis.Scalar.createApiReference('#api', {
  url: '/openapi.json',
  customCss,
  servers: [{ url: location.origin }],
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
  persistAuth: false,
  defaultOpenAllTags: true,
  hiddenClients: { c: true, clojure: true, csharp: true, dart: true, fsharp: true, java: true, kotlin: true, objc: true, ocaml: true, r: true, swift: true },
})
