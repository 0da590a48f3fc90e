import type { ScriptLimits } from '@svc/core/contracts'
import type { ProtectedView } from '@svc/safe-fs'
import { refused } from './errors.ts'
import type { GuestFetch } from './guest-fetch.ts'
import type { GuestFiles } from './guest-files.ts'
import type { Servant } from './guest-thread.ts'
import { MOST_CHARACTERS } from './messages.ts'

type Grants = Pick<ScriptLimits, 'network' | 'paths'>

/** The most lists of folders that are kept open: they come from configurations. */
const MOST_KEPT = 64

/** Makes what answers guests, with what was granted to them and no more. */
export function createServants(fetch: GuestFetch, protectedPaths: ProtectedView): (grants: Grants) => Servant {
  const folders = new Map<string, Promise<GuestFiles>>()
  const filesOf = (paths: readonly string[]): Promise<GuestFiles> => {
    const key = JSON.stringify(paths)
    const kept = folders.get(key)
    if (kept) return kept
    if (folders.size === MOST_KEPT) folders.clear()
    const opened = openFiles(paths, protectedPaths).catch(() => {
      folders.delete(key)
      // Where it should lie is the operator's, who is told at the start.
      throw refused('a folder of files is not there')
    })
    folders.set(key, opened)
    return opened
  }
  return ({ network = [], paths = [] }) =>
    async (name, json, signal) => {
      const asked = Object(JSON.parse(json)) as { readonly path?: unknown; readonly content?: unknown }
      // The thread grants no more than this; a guest that broke out of its engine must not get further.
      if (name === 'fetch' ? network.length === 0 : paths.length === 0) throw refused(`${name} is not allowed in the sandbox`)
      if (name === 'fetch') return packed(await fetch(asked, network, signal))
      const files = await filesOf(paths)
      const path = textOf(asked.path, 'the path')
      if (name === 'write') return packed(await files.write(path, textOf(asked.content, 'the content'), signal))
      return packed(await files[name](path, signal))
    }
}

/** Most hosts never show a guest a file: what that takes is loaded with the first one. */
const openFiles = async (paths: readonly string[], protectedPaths: ProtectedView): Promise<GuestFiles> =>
  (await import('./guest-files.ts')).openGuestFiles(paths, protectedPaths)

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw refused(`files: ${what} must be a text`)
  return value
}

function packed(answer: unknown): string {
  const json = JSON.stringify(answer)
  if (json.length > MOST_CHARACTERS * 2) throw refused('the answer is too large')
  return json
}
