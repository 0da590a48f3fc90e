import { randomUUID } from 'node:crypto'
import { type FSWatcher, lstatSync, watch } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Enforced, ProcessLimits, ProcessRequest, ProcessSandbox, WrappedProcess } from '@svc/core/contracts'
import type { ProtectedView } from '@svc/safe-fs'
import { lineOf, verifying } from './bubblewrap.ts'
import { unavailable } from './errors.ts'
import { both, FREE, type Hold, type LimitKind, type LimitValues, NOTHING } from './limits.ts'
import { lookAtMachine, type Machine } from './machine.ts'
import { openMountPoints } from './mount-points.ts'
import { realPathOf } from './paths.ts'
import { protect, type Protection } from './protection.ts'
import { showFor, type ShownProcess } from './view.ts'

export interface ProcessSandboxOptions {
  /** The svc home: no process in a sandbox sees it. */
  readonly home: string
  /** Paths that must stay unchanged in writable folders. */
  readonly protectedPaths?: ProtectedView
  /** Writes a warning to the log. */
  readonly warn?: (facts: Readonly<Record<string, unknown>>, message: string) => void
}

const REPLACED =
  'a protected path was replaced while a program in the sandbox could write there; svc ends the program: check the path'

/** Creates the sandbox. It examines the machine at the first call. */
export function createSandbox({
  home,
  protectedPaths,
  warn = () => {},
}: ProcessSandboxOptions): ProcessSandbox & AsyncDisposable {
  const holds = new Map<string, Hold>()
  const machine = onceItWorks(lookAtMachine)
  const mountPoints = openMountPoints(join(home, 'run', 'mounts'))
  const swept = mountPoints.sweep()

  /** If the paths cannot be protected, no process starts, and its limits are released. */
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
      const [shown, limited] = await bothAtOnce(request, limits, found, resolve(home))
      const id = randomUUID()
      const protection = await protectedIn(shown, request.lasting === true, limited.hold)
      const free = await mountPoints.hold(protection.absent)
      // the process ends when a protected path loses its protection; the caller starts it again
      const replaced = watchReplaced([...protection.read, ...protection.anchors], path => {
        warn({ path }, REPLACED)
        limited.hold.release().catch(() => {})
      })
      holds.set(id, {
        ...limited.hold,
        async release() {
          replaced[Symbol.dispose]()
          return limited.hold.release().finally(free)
        },
      })
      const unset = Object.keys(limited.hold.env).filter(name => !(name in shown.env))
      const inside = lineOf(bwrap, { ...shown.view, protection, unset })
      const { write } = shown.view
      const verified = write.length > 0 ? await verifying(inside, write) : []
      const line = [...limited.hold.before, ...inside, ...verified, ...limited.hold.within, ...shown.program]
      return wrapped(id, line, { ...limited.hold.env, ...shown.env }, { ...limited.enforced, ...enforcedOf(request, shown) })
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...holds.keys()].map(release))
    },
  }
}

/** Prepares the view and the limits in parallel. */
async function bothAtOnce(request: ProcessRequest, limits: LimitValues, found: Machine, home: string) {
  const showing = realPathOf(home).then(real => showFor(request, real))
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

/** Shares one examination between concurrent callers. It keeps a good result only: the operator can install what is missing. */
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

/** Default limit of processes and threads. */
const PIDS = 256

/** Returns the limits to enforce. Throws SANDBOX_UNAVAILABLE for a requested limit that this machine cannot enforce. */
function needed({ memoryBytes, pids }: ProcessLimits, machine: Machine): LimitValues {
  if (memoryBytes !== undefined && !machine.memory) throw unavailable('this machine cannot enforce a limit of memory')
  if (pids !== undefined && !machine.pids) throw unavailable('this machine cannot enforce a limit of processes')
  const most = pids ?? (machine.pids ? PIDS : undefined)
  return { ...(memoryBytes === undefined ? {} : { memory: memoryBytes }), ...(most === undefined ? {} : { pids: most }) }
}

/** Enforces the limits. */
async function holdLimits(
  limits: LimitValues,
  machine: Machine,
  isNode: () => Promise<boolean>
): Promise<{ readonly hold: Hold; readonly enforced: Pick<Enforced, LimitKind> }> {
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
 * Calls `ended` once, when another file or folder replaces one of these paths. A mount ends in every sandbox when its mount point is renamed or removed on
 * this machine, as an editor and `git config` do. A program could then write to the protected path.
 */
function watchReplaced(paths: readonly string[], ended: (path: string) => void): Disposable {
  const known = new Map(paths.map(path => [path, identityOf(path)]))
  const watchers: FSWatcher[] = []
  const close = () => watchers.splice(0).forEach(watcher => watcher.close())
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
    // the folder itself was removed, with all paths in it
    watchers.push(watcher.on('error', () => inside.forEach(look)))
  }
  // a path that was replaced before the watch began
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
