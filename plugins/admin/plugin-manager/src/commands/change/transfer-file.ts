import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Longer than a transfer lasts. */
const ABANDONED_MS = 3_600_000

/** Calls `work` with the name of a file for a packed set, and removes the file afterwards. Removes those of killed processes. */
export async function withTransferFile<T>(home: string, work: (file: string) => Promise<T>): Promise<T> {
  const folder = join(home, 'plugins', 'transfer')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const path of (await readdir(folder)).map(name => join(folder, name))) {
    const at = await stat(path).catch(() => undefined)
    if (at && Date.now() - at.mtimeMs > ABANDONED_MS) await rm(path, { force: true })
  }
  const file = join(folder, `${randomUUID()}.tgz`)
  try {
    return await work(file)
  } finally {
    await rm(file, { force: true })
  }
}
