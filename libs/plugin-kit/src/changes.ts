import { type CallContext, defineTopic, type Events, type Log, redactData } from '@svc/core'
import { type ChangeEventData, ConfigChanged, type Json } from '@svc/core/contracts'

/** The state of a thing, as the API shows it. */
type Shown = { readonly [member: string]: Json | undefined }

/** A change by a principal. */
export interface Change {
  /** What was done, in the past tense: `webhook_added`. It is the type of the event. */
  readonly type: string
  /** What changed: `webhooks/<id>`. */
  readonly subject: string
  /** The state before; absent for a new thing. */
  readonly before?: Shown | undefined
  /** The state after; absent for a removed thing. */
  readonly after?: Shown | undefined
}

/** Publishes and logs a change. */
export type Publish = (change: Change, ctx: CallContext) => void

/**
 * Publishes a change as an event of the category `AUDIT`, and logs it with its principal. Both have only the members that differ. Values of members whose name
 * says that they are secret are replaced. Call it after the change is stored.
 */
export function publishChange(events: Events, log: Log, change: Change, ctx: CallContext): void {
  const { type, subject } = change
  const { before, after } = differenceOf(change.before, change.after)
  const data: ChangeEventData = { subject, before: before ?? null, after: after ?? null }
  log.info({ change: type, subject, before, after, principal: ctx.principal.id, request_id: ctx.requestId }, 'changed')
  const topic = defineTopic<ChangeEventData>(ConfigChanged.category, type)
  events.publish(topic, data, ctx).catch((error: unknown) => log.warn({ err: error, change: type }, 'failed to publish a change'))
}

/** The members that differ. Of a new or removed thing: all. */
export function differenceOf(before: Shown | undefined, after: Shown | undefined): Pick<Change, 'before' | 'after'> {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const differing = names.filter(name => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
  return { before: before && picked(before, differing), after: after && picked(after, differing) }
}

const HIDDEN = /secret|password|credential|api_?key|private_?key|^token$/i

function picked(state: Shown, names: readonly string[]): Shown {
  const members = names.filter(name => state[name] !== undefined)
  return redactData(Object.fromEntries(members.map(name => [name, HIDDEN.test(name) ? '[secret]' : state[name]])))
}
