// Shows the API of the server that sent this page and contacts no other server.
globalThis.Scalar.createApiReference('#api', {
  url: '/openapi.json',
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
