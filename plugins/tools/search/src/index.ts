import { definePlugin, systemContext } from '@svc/core'
import { Tools, Workplace } from '@svc/core/contracts'
import { openRoots, rootProblems } from '@svc/safe-fs'
import { createSearchText } from './search-text.ts'
import { searchConfig } from './settings.ts'

export default definePlugin({
  section: 'tools.search',
  config: searchConfig,
  check: ({ roots }) => rootProblems(roots, 'tools.search.roots'),
  optional: { workplace: Workplace },
  async setup(scope, { workplace }) {
    const folders = scope.config.roots ?? (await workplace?.roots(systemContext(scope.signal))) ?? ['.']
    const roots = await openRoots(folders, 'tools.search.roots')
    scope.add(Tools, 'search_text', createSearchText(roots, scope.config))
  },
})

export type { FileSearchConfig } from './settings.ts'
