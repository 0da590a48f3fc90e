import { open } from 'node:fs/promises'
import { constants, gunzipSync } from 'node:zlib'

const TARBALL = /\.(tgz|tar\.gz)$/
/** The first entry of a bundle; that of a package's tarball lies in a folder. */
const FIRST = 'bundle.json\0'
const HEAD_BYTES = 4096

/** Whether a file is a bundle of `svc plugins pack`, by its first name; what cannot be read is none, and whoever reads it says why. */
export async function isBundle(file: string): Promise<boolean> {
  if (!TARBALL.test(file)) return false
  try {
    // the rest of it is not looked at, and need not be there
    return gunzipSync(await headOf(file), { finishFlush: constants.Z_SYNC_FLUSH })
      .toString('latin1')
      .startsWith(FIRST)
  } catch {
    return false
  }
}

async function headOf(file: string): Promise<Uint8Array> {
  await using handle = await open(file)
  const head = Buffer.alloc(HEAD_BYTES)
  const { bytesRead } = await handle.read(head)
  return head.subarray(0, bytesRead)
}
