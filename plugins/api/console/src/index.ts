import { definePlugin, Host, PackageFiles, systemContext } from '@svc/core'
import { AuthSchemes, ConsolePages, Mounts, Routes, Store, Tokens, Tools } from '@svc/core/contracts'
import { CONSOLE_CONFIG } from './config.ts'
import { createIssuerRoutes, createLoginRoutes } from './login.ts'
import { createOidcLogin } from './oidc-login.ts'
import { createConsolePage } from './page.ts'
import { createPluginPages } from './plugin-pages.ts'
import { createPluginViews } from './plugin-views.ts'
import { createConsoleScheme, SCHEME } from './scheme.ts'
import { createSessions } from './session.ts'

/** The console: a page at `/console`, and its login. The page itself uses the public API only. */
export default definePlugin({
  section: 'console',
  config: CONSOLE_CONFIG,
  requires: { files: PackageFiles, host: Host, pages: ConsolePages, schemes: AuthSchemes, store: Store, tools: Tools },
  optional: { tokens: Tokens },
  async setup(scope, { files, host, pages, schemes, store, tokens, tools }) {
    const lasting = systemContext(scope.signal, 'console')
    const sessions = await createSessions(store, lasting)
    const { log } = scope
    const { oidc: config } = scope.config
    const oidc = config && (await createOidcLogin({ config, schemes, sessions, store, log, lasting }))
    const { frames, route } = createPluginPages({ pages, files, host, sessions, tools })
    const views = createPluginViews({ pages, files, host, log })
    // before the host is ready, its report lacks plugins that are being set up
    let isReady = false
    scope.tap(ConsolePages.changed, async ({ added }) => (isReady ? views.inspect(added, lasting) : undefined))
    scope.tap(Host.hooks.ready, async () => {
      isReady = true
      await views.inspect(pages.names(), lasting)
      return undefined
    })
    scope.add(Mounts, 'console', createConsolePage(new URL('../assets/', import.meta.url), frames))
    scope.add(AuthSchemes, SCHEME, createConsoleScheme({ schemes, sessions, oidc }))
    const logins = createLoginRoutes({ schemes, sessions, tokens, oidc, signal: scope.signal })
    const routes = { ...logins, ...createIssuerRoutes(oidc), console_pages: route, console_view: views.route }
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
