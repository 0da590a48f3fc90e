import { definePlugin, systemContext } from '@svc/core'
import { Tools, Workplace } from '@svc/core/contracts'
import { openRoots } from '@svc/safe-fs'
import { createSearchText } from './search-text.ts'
import { searchConfig } from './settings.ts'

export default definePlugin({
  section: 'tools.search',
  config: searchConfig,
  optional: { workplace: Workplace },
  async setup(scope, { workplace }) {
    const folders = scope.config.roots ?? (await workplace?.roots(systemContext(scope.signal))) ?? ['.']
    const roots = await openRoots(folders, 'tools.search.roots')
    scope.add(Tools, 'search_text', createSearchText(roots, scope.config))
  },
})

export type { SearchConfig } from './settings.ts'
