import { definePlugin } from '@svc/core'
import { ProtectedPaths, Tools, Workplace } from '@svc/core/contracts'
import { createLocks, openRoots, rootProblems } from '@svc/safe-fs'
import { createDeleteFile } from './delete-file.ts'
import { createEditFile } from './edit-file.ts'
import { createFindFiles } from './find-files.ts'
import { createListDirectory } from './list-directory.ts'
import { createMoveFile } from './move-file.ts'
import { createReadFile } from './read-file.ts'
import { filesConfig } from './settings.ts'
import { createWriteFile } from './write-file.ts'

export default definePlugin({
  section: 'tools.files',
  config: filesConfig,
  check: ({ roots }) => rootProblems(roots, 'tools.files.roots'),
  requires: { protectedPaths: ProtectedPaths },
  provides: Workplace,
  async setup(scope, { protectedPaths }) {
    const { max_bytes, max_entries, max_write_bytes, max_search_entries } = scope.config
    const roots = await openRoots(scope.config.roots, 'tools.files.roots', { protectedPaths })
    const alone = createLocks()
    scope.add(Tools, 'read_file', createReadFile(roots, max_bytes))
    scope.add(Tools, 'write_file', createWriteFile(roots, max_write_bytes, alone))
    scope.add(Tools, 'edit_file', createEditFile(roots, max_write_bytes, alone))
    scope.add(Tools, 'list_directory', createListDirectory(roots, max_entries))
    scope.add(Tools, 'find_files', createFindFiles(roots, max_entries, max_search_entries))
    scope.add(Tools, 'move_file', createMoveFile(roots))
    scope.add(Tools, 'delete_file', createDeleteFile(roots, max_entries))
    const folders = roots.all.map(root => root.real)
    return { roots: async () => folders }
  },
})

export type { FilesConfig } from './settings.ts'
