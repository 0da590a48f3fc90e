import { createBoundedWork, workFile } from '@svc/worker-pool'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createGuardedFetch, fetchOptions } from '@svc/safe-fetch'
import { readKeyOf } from '@svc/provider-http/key'
import { createFetchPage, WAIT_MS } from './fetch-page.ts'
import { createSearchWeb, endpointOf } from './search-web.ts'
import { webConfig } from './settings.ts'
import type { WebWork } from './work.ts'

export default definePlugin({
  section: 'tools.web',
  config: webConfig,
  async setup(scope) {
    const { config } = scope
    const web = scope.use(createGuardedFetch(fetchOptions(config)))
    const file = workFile('./work', import.meta.url)
    const work = scope.use(
      createBoundedWork<WebWork>({ file, timeMs: config.convert_timeout_ms, memoryMb: config.convert_memory_mb, waitMs: WAIT_MS })
    )
    scope.add(Tools, 'fetch_page', createFetchPage(web, work, config))
    if (!config.search) return
    const key = await readKeyOf(config.search, { where: 'tools.web.search', code: 'CONFIG_INVALID', required: false })
    const endpoint = endpointOf(config.search, key)
    // the endpoint of the operator can have any address
    const search = scope.use(createGuardedFetch({ ...fetchOptions(config), allow: [endpoint.host], ports: undefined }))
    scope.add(Tools, 'search_web', createSearchWeb(search, endpoint, config))
  },
})

export type { WebConfig } from './settings.ts'
