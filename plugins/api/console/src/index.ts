import { definePlugin, Host, PackageFiles, systemContext } from '@svc/core'
import { AuthSchemes, ConsolePages, Mounts, Routes, Store, Tokens } from '@svc/core/contracts'
import { createLoginRoutes } from './login.ts'
import { createConsolePage } from './page.ts'
import { createPluginPages } from './plugin-pages.ts'
import { createConsoleScheme, SCHEME } from './scheme.ts'
import { createSessions } from './session.ts'

/** The console: a page at `/console`, and its login. The page itself uses the public API only. */
export default definePlugin({
  requires: { files: PackageFiles, host: Host, pages: ConsolePages, schemes: AuthSchemes, store: Store },
  optional: { tokens: Tokens },
  async setup(scope, { files, host, pages, schemes, store, tokens }) {
    const sessions = await createSessions(store, systemContext(scope.signal, 'console'))
    const { frames, route } = createPluginPages({ pages, files, host, sessions })
    scope.add(Mounts, 'console', createConsolePage(new URL('../assets/', import.meta.url), frames))
    scope.add(AuthSchemes, SCHEME, createConsoleScheme({ schemes, sessions }))
    const routes = { ...createLoginRoutes({ schemes, sessions, tokens, signal: scope.signal }), console_pages: route }
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
