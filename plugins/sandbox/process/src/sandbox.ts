import { randomUUID } from 'node:crypto'
import { type FSWatcher, lstatSync, watch } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Enforced, ProcessLimits, ProcessRequest, ProcessSandbox, WrappedProcess } from '@svc/core/contracts'
import type { ProtectedView } from '@svc/safe-fs'
import { lineOf } from './bubblewrap.ts'
import { unavailable } from './errors.ts'
import { both, FREE, type Hold, type Kind, type Limits, NOTHING } from './holding.ts'
import { lookAtMachine, type Machine } from './machine.ts'
import { openMountPoints } from './mount-points.ts'
import { realPlace } from './paths.ts'
import { protect, type Protection } from './protection.ts'
import { verifying } from './verified.ts'
import { showFor, type ShownProcess } from './view.ts'

export interface SandboxOptions {
  /** The svc home: nobody in a sandbox ever sees it. */
  readonly home: string
  /** What must stay as it is in folders that a sandbox may write. */
  readonly protectedPaths?: ProtectedView
  /** Writes a warning to the log. */
  readonly warn?: (facts: Readonly<Record<string, unknown>>, message: string) => void
}

const REPLACED =
  'a protected path was replaced while a program in the sandbox could write there: the program is ended; check what is there now'

/** Looks at nothing before it is first asked. */
export function createSandbox({ home, protectedPaths, warn = () => {} }: SandboxOptions): ProcessSandbox & AsyncDisposable {
  const holds = new Map<string, Hold>()
  const machine = onceItWorks(lookAtMachine)
  const mountPoints = openMountPoints(join(home, 'run', 'mounts'))
  const swept = mountPoints.sweep()

  /** Where it cannot be held nothing is started, and what was made for it goes. */
  async function protectedIn({ view }: ShownProcess, lasting: boolean, hold: Hold): Promise<Protection> {
    try {
      return await protect(view.write, { view: protectedPaths, lasting, isMountPoint: path => mountPoints.has(path) })
    } catch (error) {
      await hold.release()
      throw error
    }
  }

  async function release(id: string) {
    const hold = holds.get(id)
    holds.delete(id)
    return (await hold?.release()) ?? NOTHING
  }

  return {
    probe: async () => (await machine()).ability,
    release,
    async wrap(request, ctx) {
      const found = await machine()
      const { bwrap, ability } = found
      if (!bwrap) throw unavailable(ability.reason ?? 'bubblewrap does not work here')
      const limits = needed(request.limits, found)
      ctx.signal.throwIfAborted()
      await swept
      const [shown, held] = await bothAtOnce(request, limits, found, resolve(home))
      const id = randomUUID()
      const protection = await protectedIn(shown, request.lasting === true, held.hold)
      const free = await mountPoints.hold(protection.absent)
      // nothing in it may go on when a protected path has lost its protection; who started it starts it anew
      const replaced = watchReplaced([...protection.read, ...protection.anchors], path => {
        warn({ path }, REPLACED)
        held.hold.release().catch(() => {})
      })
      holds.set(id, {
        ...held.hold,
        async release() {
          replaced[Symbol.dispose]()
          return held.hold.release().finally(free)
        },
      })
      const unset = Object.keys(held.hold.env).filter(name => !(name in shown.env))
      const inside = lineOf(bwrap, { ...shown.view, protection, unset })
      const { write } = shown.view
      const verified = write.length > 0 ? await verifying(inside, write) : []
      const line = [...held.hold.before, ...inside, ...verified, ...held.hold.within, ...shown.program]
      return wrapped(id, line, { ...held.hold.env, ...shown.env }, { ...held.enforced, ...enforcedOf(request, shown) })
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...holds.keys()].map(release))
    },
  }
}

/** What is shown, and what holds the limits, made meanwhile: a start waits for the longer of both. */
async function bothAtOnce(request: ProcessRequest, limits: Limits, found: Machine, home: string) {
  const showing = realPlace(home).then(real => showFor(request, real))
  const holding = holdLimits(limits, found, async () => (await showing).isNode)
  try {
    return await Promise.all([showing, holding])
  } catch (error) {
    await holding.then(
      ({ hold }) => hold.release(),
      () => {}
    )
    throw error
  }
}

const enforcedOf = ({ limits }: ProcessRequest, { isFenced }: { readonly isFenced: boolean }) =>
  ({ network: limits.networkAccess ? 'host' : 'none', nodePermission: isFenced }) as const

const wrapped = (
  id: string,
  [file, ...args]: readonly string[],
  env: WrappedProcess['env'],
  enforced: WrappedProcess['enforced']
): WrappedProcess => ({ id, file: file!, args, env, enforced })

/** One look for all that ask at the same time; kept where the machine can, for what is missing may be installed. */
function onceItWorks(look: () => Promise<Machine>): () => Promise<Machine> {
  let known: Promise<Machine> | undefined
  return () => {
    known ??= look().then(
      found => {
        if (!found.ability.ready) known = undefined
        return found
      },
      (error: unknown) => {
        known = undefined
        throw error
      }
    )
    return known
  }
}

/** Processes and threads where nobody says how many. */
const PIDS = 256

/** The limits to hold. Throws SANDBOX_UNAVAILABLE for one that was asked for and cannot be held. */
function needed({ memoryBytes, pids }: ProcessLimits, machine: Machine): Limits {
  if (memoryBytes !== undefined && !machine.memory) throw unavailable('this machine can hold no limit of memory')
  if (pids !== undefined && !machine.pids) throw unavailable('this machine can hold no limit of processes')
  const most = pids ?? (machine.pids ? PIDS : undefined)
  return { ...(memoryBytes === undefined ? {} : { memory: memoryBytes }), ...(most === undefined ? {} : { pids: most }) }
}

/** Makes what holds them. */
async function holdLimits(
  limits: Limits,
  machine: Machine,
  isNode: () => Promise<boolean>
): Promise<{ readonly hold: Hold; readonly enforced: Pick<Enforced, Kind> }> {
  const { memory, pids } = limits
  const program = { isNode }
  const enforced = {
    memory: memory === undefined ? null : machine.memory!.name,
    pids: pids === undefined ? null : machine.pids!.name,
  }
  if (machine.memory && machine.memory === machine.pids) return { hold: await machine.memory.hold(limits, program), enforced }
  const first = memory === undefined ? FREE : await machine.memory!.hold({ memory }, program)
  try {
    const second = pids === undefined ? FREE : await machine.pids!.hold({ pids }, program)
    return { hold: both(first, second), enforced }
  } catch (error) {
    await first.release()
    throw error
  }
}

/**
 * Calls `ended` once, when another file or folder takes the place of one of these paths. A mount ends in every sandbox when its mount point is renamed or
 * removed on this machine, as an editor and `git config` do it: what it protected could then be written.
 */
function watchReplaced(paths: readonly string[], ended: (path: string) => void): Disposable {
  const known = new Map(paths.map(path => [path, identityOf(path)]))
  const watchers: FSWatcher[] = []
  const close = () => watchers.splice(0).forEach(one => one.close())
  const look = (path: string) => {
    if (watchers.length === 0 || identityOf(path) === known.get(path)) return
    close()
    ended(path)
  }
  for (const [folder, inside] of Map.groupBy(paths, dirname)) {
    const names = new Map(inside.map(path => [basename(path), path]))
    const watcher = watch(folder, { persistent: false }, (_, name) => {
      const path = names.get(name ?? '')
      if (path !== undefined) look(path)
    })
    // the folder itself is gone: so is what lay in it
    watchers.push(watcher.on('error', () => inside.forEach(look)))
  }
  // what was replaced before the watch began
  paths.forEach(look)
  return { [Symbol.dispose]: close }
}

function identityOf(path: string): string {
  try {
    const { dev, ino } = lstatSync(path, { bigint: true })
    return `${dev} ${ino}`
  } catch {
    return ''
  }
}
