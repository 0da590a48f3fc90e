import process from 'node:process'
import type { RefusalKind } from '@svc/core/contracts'
import { guardCalls } from './guard-calls.ts'
import { guardSockets } from './guard-sockets.ts'
import { guardVariables } from './guard-variables.ts'

/** What the policy lets a guarded process know, in the variable `SVC_ISOLATED`. */
interface GuardSettings {
  /** Names of variables that it declares, with `*`. */
  readonly env: readonly string[]
  /** Folders that it may look at. */
  readonly visible: readonly string[]
  /** The socket that leads to the host's proxy, and the port of the loopback at which libraries look for one. */
  readonly proxy?: { readonly socket: string; readonly port: number }
}

/** Called for each thing that was reached for in vain: once for each kind and name. */
export type Refuse = (kind: RefusalKind, what: string) => void

const MOST = 500
const VARIABLE = 'SVC_ISOLATED'

/** Watches what the plugin reaches for. It is no wall, it tells: what is refused is refused by the sandbox. */
export async function openGuard(tell: Refuse): Promise<void> {
  const written = process.env[VARIABLE]
  delete process.env[VARIABLE]
  if (written === undefined) return
  const { env, visible, proxy } = JSON.parse(written) as GuardSettings
  const told = new Set<string>()
  const refuse: Refuse = (kind, what) => {
    const key = `${kind} ${what}`
    if (told.has(key) || told.size >= MOST) return
    told.add(key)
    tell(kind, what)
  }
  if (proxy) {
    const { guardFetch, openProxyDoor } = await import('./guard-network.ts')
    await openProxyDoor(proxy)
    guardFetch()
  }
  guardCalls(refuse, visible)
  if (proxy) guardSockets(refuse)
  guardVariables(refuse, env)
}
