import { mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

const SECRET = 'the secret'

/** Starts the plugin on a root with a secret folder beside it. */
export async function openFiles(config: object = {}, roots = ['root']) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-files-')))
  for (const root of roots) await mkdir(join(folder, root), { recursive: true })
  await mkdir(join(folder, 'beside'))
  await writeFile(join(folder, 'beside', 'secret.txt'), SECRET)
  const at = (...parts: string[]) => join(folder, ...parts)
  const clear = () => rm(folder, { recursive: true, force: true })
  const settings = { tools: { files: { roots: roots.map(root => at(root)), ...config } } }
  const host = await testHost([new URL('../..', import.meta.url)], { config: settings }).catch(async error => {
    await clear()
    throw error
  })
  const ctx = systemContext(new AbortController().signal)
  const tool = (name: string) => host.slot(Tools).get(name)!
  const call = (name: string) => async (args: Parameters<Tool['call']>[0]) => tool(name).call(args, ctx)
  const close = async () => {
    await host.close()
    await clear()
  }
  return {
    at,
    host,
    tool,
    read: call('read_file'),
    list: call('list_directory'),
    write: call('write_file'),
    edit: call('edit_file'),
    find: call('find_files'),
    move: call('move_file'),
    remove: call('delete_file'),
    close,
    [Symbol.asyncDispose]: close,
  }
}

export const text = (path: string) => readFile(path, 'utf8')
export const fields = async (work: Promise<{ structured?: unknown }>) => (await work).structured as Record<string, unknown>
export const read = async (work: Promise<{ structured?: unknown }>) =>
  (await work).structured as Record<string, unknown> & { content: string; note?: string }
export const list = async (work: Promise<{ structured?: unknown }>) =>
  (await work).structured as { path: string; entries: { name: string; type: string; size?: number }[]; truncated: boolean }
export const refusal = (work: Promise<unknown>): Promise<{ code?: string; message: string; details?: object }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )

export async function sample() {
  const files = await openFiles()
  await mkdir(files.at('root', 'notes'))
  await writeFile(files.at('root', 'a.txt'), 'one\ntwo\nthree\n')
  await writeFile(files.at('root', 'notes', 'b.txt'), 'b')
  await writeFile(files.at('root', 'picture.png'), Buffer.from([0x89, 0x50, 0, 0, 1]))
  await symlink(files.at('beside', 'secret.txt'), files.at('root', 'leak.txt'))
  await symlink(files.at('beside'), files.at('root', 'leak'))
  return files
}

/** Swaps a folder of the root with a link that leads out, and back, until it is stopped. */
export function swapping(files: Awaited<ReturnType<typeof openFiles>>, name: string) {
  let going = true
  const swap = (async () => {
    const path = files.at('root', name)
    const clear = () => rm(path, { recursive: true, force: true })
    while (going) {
      await rename(path, files.at('root', 'put-aside'))
      // a tool can have created the folder again
      await symlink(files.at('beside'), path).catch(clear)
      await clear()
      const back = () =>
        rename(files.at('root', 'put-aside'), path).then(
          () => true,
          () => false
        )
      while (!(await back())) await clear()
    }
  })()
  swap.catch(() => {})
  return async () => {
    going = false
    await swap
  }
}
