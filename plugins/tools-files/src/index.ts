import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createListDirectory } from './list-directory.ts'
import { createReadFile } from './read-file.ts'
import { openRoots } from './roots.ts'

/** The section `tools.files`. */
interface FilesConfig {
  /** Folders the tools may look into; relative ones from the working directory. */
  roots: string[]
  /** The most bytes of a file that one call returns. */
  max_bytes: number
  /** The most entries of a directory that one call returns. */
  max_entries: number
}

export default definePlugin({
  section: 'tools.files',
  config: schema<FilesConfig>({
    type: 'object',
    properties: {
      roots: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, default: ['.'] },
      max_bytes: { type: 'integer', minimum: 1024, maximum: 8_388_608, default: 262_144 },
      max_entries: { type: 'integer', minimum: 1, maximum: 100_000, default: 1000 },
    },
    additionalProperties: false,
  }),
  async setup(scope) {
    const roots = await openRoots(scope.config.roots)
    scope.add(Tools, 'read_file', createReadFile(roots, scope.config.max_bytes))
    scope.add(Tools, 'list_directory', createListDirectory(roots, scope.config.max_entries))
  },
})
