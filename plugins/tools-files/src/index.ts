import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createListDirectory } from './list-directory.ts'
import { createReadFile } from './read-file.ts'
import { openRoots } from './roots.ts'
import { filesConfig } from './settings.ts'

export default definePlugin({
  section: 'tools.files',
  config: filesConfig,
  async setup(scope) {
    const roots = await openRoots(scope.config.roots)
    scope.add(Tools, 'read_file', createReadFile(roots, scope.config.max_bytes))
    scope.add(Tools, 'list_directory', createListDirectory(roots, scope.config.max_entries))
  },
})

export type { FilesConfig } from './settings.ts'
