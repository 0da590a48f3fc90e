import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemContext } from '@svc/core'
import { type Tool, Tools, Workplace } from '@svc/core/contracts'
import { service, testHost } from '@svc/testing'
import { expect } from 'chai'

export interface SearchResult {
  path: string
  matches: { path: string; line: number; column: number; text: string; before?: string[]; after?: string[] }[]
  files_searched: number
  truncated: boolean
  note?: string
}

/** A folder with a root that has these files, something secret beside it, and the plugin on that root. */
export async function openSearch(files: Record<string, string | Buffer> = {}, config: object = {}, roots = ['root']) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-search-')))
  const at = (...parts: string[]) => join(folder, ...parts)
  for (const root of [...roots, 'beside']) await mkdir(at(root), { recursive: true })
  await writeFile(at('beside', 'secret.txt'), 'needle outside')
  await symlink(at('beside'), at(roots[0]!, 'leak'))
  await symlink(at('beside', 'secret.txt'), at(roots[0]!, 'leak.txt'))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(at(roots[0]!, path)), { recursive: true })
    await writeFile(at(roots[0]!, path), text)
  }
  // As tools-files gives it.
  const workplace = service(Workplace, { roots: async () => roots.map(root => at(root)) })
  const host = await testHost([new URL('../..', import.meta.url)], { give: [workplace], config: { tools: { search: config } } })
  const tool = host.slot(Tools).get('search_text')!
  const ctx = systemContext(new AbortController().signal)
  const search = async (args: Parameters<Tool['call']>[0]) => (await tool.call(args, ctx)).structured as unknown as SearchResult
  const close = async () => {
    await host.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { at, tool, ctx, search, close, [Symbol.asyncDispose]: close }
}

export const places = ({ matches }: SearchResult) => matches.map(({ path, line }) => `${path}:${line}`)
export const refusal = (work: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )
