import { open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { codeOf, svcError } from '../src/errors.ts'
import { type CallContext, defineService } from '../src/token.ts'

/** The files of the packages of the plugins that run. Those of an installed plugin were compared with the lock when svc started. */
export interface PackageFiles {
  /**
   * Reads a file by its path from the folder of the package, with `/`: `console/index.html`. Undefined: the plugin is not a
   * package, or has no such file. Throws INVALID_VALUE for a file over 8 MiB.
   */
  read(plugin: string, path: string, ctx: CallContext): Promise<Uint8Array | undefined>
}
export const PackageFiles = defineService<PackageFiles>('package_files', { api: 1, methods: { read: 'call' } })

const LARGEST = 8 * 1_048_576
/** No hidden files, no steps upwards, and no other package. */
const SEGMENT = /^(?!node_modules$)[\w@~-][\w@~.-]*$/
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG'])

/** `folderOf` finds the folder of the package of a running plugin. */
export const createPackageFiles = (folderOf: (plugin: string) => string | undefined): PackageFiles => ({
  async read(plugin, path) {
    const folder = folderOf(plugin)
    if (folder === undefined || !path.split('/').every(segment => SEGMENT.test(segment))) return undefined
    try {
      const [root, file] = await Promise.all([realpath(folder), realpath(join(folder, path))])
      return file.startsWith(root + sep) ? await contentOf(file, path) : undefined
    } catch (error) {
      if (MISSING.has(codeOf(error) ?? '')) return undefined
      throw error
    }
  },
})

async function contentOf(file: string, path: string): Promise<Uint8Array | undefined> {
  await using handle = await open(file)
  const { size } = await handle.stat().then(found => (found.isFile() ? found : { size: undefined }))
  if (size === undefined) return undefined
  if (size > LARGEST)
    throw svcError('INVALID_VALUE', `the file ${path} has more than ${LARGEST} bytes`, {
      details: { field: 'path', reason: 'too large' },
    })
  return new Uint8Array(await handle.readFile())
}
