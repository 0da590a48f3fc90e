import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { ProcessRequest, ProcessSandbox, WrappedProcess } from '@svc/core/contracts'
import type { ProtectedView } from '@svc/safe-fs'
import { lineOf } from './bubblewrap.ts'
import { unavailable } from './errors.ts'
import { type Hold, type Limits, NOTHING } from './holding.ts'
import { holdLimits, needed } from './limits.ts'
import { lookAtMachine, type Machine } from './machine.ts'
import { openMountPoints } from './mount-points.ts'
import { realPlace } from './paths.ts'
import { type Protection, protect } from './protection.ts'
import { watchReplaced } from './replaced.ts'
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
    async wrap(request, use) {
      const found = await machine()
      const { bwrap, ability } = found
      if (!bwrap) throw unavailable(ability.reason ?? 'bubblewrap does not work here')
      const limits = needed(request.limits, found)
      use.signal.throwIfAborted()
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
