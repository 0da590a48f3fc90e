import type { ScriptLimits } from '@svc/core/contracts'
import type { ProtectedView } from '@svc/safe-fs'
import { refused } from './errors.ts'
import type { GuestFetch } from './guest-fetch.ts'
import type { GuestFiles } from './guest-files.ts'
import type { RequestHandler } from './guest-thread.ts'
import { MOST_CHARACTERS } from './messages.ts'

type Grants = Pick<ScriptLimits, 'network' | 'paths'>

/** Maximum lists of folders that are kept open. They come from configurations. */
const MAX_OPEN = 64

/** Creates the handlers for requests of guests. A handler allows only the granted hosts and folders. */
export function createRequestHandlers(fetch: GuestFetch, protectedPaths: ProtectedView): (grants: Grants) => RequestHandler {
  const folders = new Map<string, Promise<GuestFiles>>()
  const filesOf = (paths: readonly string[]): Promise<GuestFiles> => {
    const key = JSON.stringify(paths)
    const known = folders.get(key)
    if (known) return known
    if (folders.size === MAX_OPEN) folders.clear()
    const opened = openFiles(paths, protectedPaths).catch(() => {
      folders.delete(key)
      // the guest must not learn the path; the operator gets the error at startup
      throw refused('a folder of files does not exist')
    })
    folders.set(key, opened)
    return opened
  }
  return ({ network = [], paths = [] }) =>
    async (name, json, signal) => {
      const asked = Object(JSON.parse(json)) as { readonly path?: unknown; readonly content?: unknown }
      // the thread checks this too, but a guest could have escaped from its engine
      if (name === 'fetch' ? network.length === 0 : paths.length === 0) throw refused(`${name} is not allowed in the sandbox`)
      if (name === 'fetch') return packed(await fetch(asked, network, signal))
      const files = await filesOf(paths)
      const path = textOf(asked.path, 'the path')
      if (name === 'write') return packed(await files.write(path, textOf(asked.content, 'the content'), signal))
      return packed(await files[name](path, signal))
    }
}

/** Loads the code for files at the first use: most hosts grant no files. */
const openFiles = async (paths: readonly string[], protectedPaths: ProtectedView): Promise<GuestFiles> =>
  (await import('./guest-files.ts')).openGuestFiles(paths, protectedPaths)

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw refused(`files: ${what} must be a string`)
  return value
}

function packed(answer: unknown): string {
  const json = JSON.stringify(answer)
  if (json.length > MOST_CHARACTERS * 2) throw refused('the answer is too large')
  return json
}
