// Caches compiled code in the svc home. Node's default is the folder for temporary files, where another user can plant code.
import { statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

const home = process.env.SVC_HOME || join(homedir(), '.svc')
const WRITABLE_BY_OTHERS = 0o022

// with NODE_COMPILE_CACHE, the user has enabled it already
if (isOwn(statSync(home, { throwIfNoEntry: false }))) enableCompileCache(join(home, 'compile-cache'))

/** @param {import('node:fs').Stats | undefined} stats */
function isOwn(stats) {
  const uid = process.getuid?.()
  return stats !== undefined && (uid === undefined || (stats.uid === uid && (stats.mode & WRITABLE_BY_OTHERS) === 0))
}
