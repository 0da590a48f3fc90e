import type { Scope, SlotToken, TapOptions, Waterfall } from '@svc/core'
import { Checks, HealthFacts, MetricSources, type RefusalKind } from '@svc/core/contracts'
import type { Channel } from '../processes/channel.ts'
import { type Level, type HostBridge, REFUSAL_KINDS, RemoteTap } from './contract.ts'
import { canTap, type Contributions, isPublicHook, MAX_NAME_LENGTH } from './contributions.ts'
import { hookNotPermitted } from './errors.ts'
import type { Isolated } from './isolated-ref.ts'
import type { BorrowedContexts } from './borrowed-contexts.ts'
import { MAX_LINE_LENGTH, type OutputLimiter, truncateFacts } from './output-limiter.ts'

interface HostBridgeOptions {
  readonly channel: Channel
  readonly uses: BorrowedContexts
  readonly contributions: Contributions
  readonly budget: OutputLimiter
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** The longest that a stranger may ask for: whoever calls the hook waits. */
const LONGEST_TAP_MS = 60_000

/** Of a hook that every stranger may join it has the time that all have: the life of the host waits. */
function boundedTap({ stage, limitMs }: TapOptions, mayWait: boolean): TapOptions {
  const limit = mayWait && Number.isFinite(limitMs) ? { limitMs: Math.min(Math.max(1, Number(limitMs)), LONGEST_TAP_MS) } : {}
  return { ...(Number.isFinite(stage) ? { stage: Number(stage) } : {}), ...limit }
}

/** A stranger that fails blames nobody else. */
const blaming = (plugin: string) => (error: unknown) => {
  throw Object.assign(error as Error, { plugin })
}

/** Slots in which a plugin reports about itself: those who read the report do not lend it their rights. */
const REPORTS: ReadonlySet<string> = new Set([Checks.name, HealthFacts.name, MetricSources.name])

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies Level[]

/** What the isolated plugin asks of its scope is asked of the real one, with the host's checks. */
export function createHostBridge(plugin: Isolated, scope: Scope, parts: HostBridgeOptions): HostBridge {
  const { channel, uses, contributions, budget, refused } = parts
  return {
    async add(slot, name, { path, methods, data = {} }) {
      const token: SlotToken = plugin.own(slot)
      contributions.put({ path, name: `${token.name}/${name}`, data }, () => {
        const item = channel.reach(path, token, { only: methods, data }) as object
        const lent = REPORTS.has(token.name) ? uses.lendToItself(token, item) : uses.lend(token, item)
        return scope.add(token, name, { ...item, ...lent })
      })
    },
    async tap(hook, path, options) {
      if (!canTap(hook.id, plugin)) {
        const named = hook.id.slice(0, MAX_NAME_LENGTH)
        await refused('hooks', named)
        throw hookNotPermitted(plugin.ref.name, named)
      }
      contributions.put({ path, name: hook.id, isTap: true }, () => {
        const far = uses.lend(RemoteTap, channel.reach(path, RemoteTap))
        return scope.tap<Waterfall<unknown>>(
          hook,
          (value, ctx) => (far.tap!(value, ctx) as Promise<unknown>).catch(blaming(plugin.ref.name)),
          boundedTap(options, !plugin.ref.held || !isPublicHook(hook.id))
        )
      })
    },
    async remove(path) {
      contributions.remove(path)
    },
    async log(level, facts, message) {
      if (LEVELS.includes(level) && budget.takes()) scope.log[level](truncateFacts(facts), message?.slice(0, MAX_LINE_LENGTH))
    },
    async refused(kind, what) {
      if (REFUSAL_KINDS.includes(kind)) await refused(kind, String(what))
    },
  }
}
