// A process of its own that serves over HTTP and counts in the file that it is given; says its port.
import { definePlugin, startHost, systemContext } from '@svc/core'
import { Http, Routes } from '@svc/core/contracts'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

const [path, perMinute, perDay] = process.argv.slice(2) as [string, string, string]
const routes = definePlugin({
  setup(scope) {
    const route = { method: 'GET', summary: 'Answers', handle: async () => ({ text: 'done' }) } as const
    scope.add(Routes, 'counted', { ...route, path: '/counted' })
    scope.add(Routes, 'free', { ...route, path: '/free', uncounted: true })
  },
})
const host = await startHost({
  plugins: [...['store-sqlite', 'rate-limit', 'http'].map(pluginFolder), { name: 'test:routes', use: routes }],
  config: {
    store: { path },
    server: {
      port: 0,
      rate_limit: { enabled: true, requests_per_minute: Number(perMinute), requests_per_day: Number(perDay) },
    },
    log: { level: 'silent' },
  },
})
process.once('disconnect', () => void host.close())
const address = await host.service(Http).address(systemContext(new AbortController().signal))
process.send!(address!.port)
