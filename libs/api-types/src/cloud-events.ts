import type { Json } from '@svc/core/contracts'

/** An event of a worker, as the bus and the feed have it. */
export interface WorkerEvent {
  readonly category: string
  readonly type: string
  readonly data: { readonly [member: string]: Json | undefined }
  readonly timestamp: number
  readonly seq: number
  readonly worker: string
  readonly principal: string
  readonly requestId: string
}

/** An event as clients and webhooks receive it: CloudEvents 1.0 in JSON. `principal`, `requestid` and `category` are extensions. */
export interface CloudEvent {
  readonly specversion: '1.0'
  /** Unique together with `source`, and also alone: workers never share a name. */
  readonly id: string
  readonly source: string
  readonly type: string
  readonly time: string
  readonly subject?: string
  readonly datacontenttype: 'application/json'
  readonly category: string
  readonly principal: string
  readonly requestid: string
  readonly data: WorkerEvent['data']
}

/** The prefix of all types of events. */
export const EVENT_TYPE = 'svc.'

/** What an event is about: the first of these members of its data. */
const SUBJECTS: readonly (readonly [member: string, folder: string])[] = [
  ['subject', ''],
  ['run', 'runs/'],
  ['job', 'jobs/'],
  ['conversation_id', 'conversations/'],
  ['turn', 'turns/'],
  ['plugin', 'plugins/'],
  ['server', 'mcp/servers/'],
  ['provider', 'providers/'],
]

export function cloudEvent(event: WorkerEvent): CloudEvent {
  const { worker, seq, type, timestamp, category, principal, requestId, data } = event
  const subject = subjectOf(data)
  return {
    specversion: '1.0',
    id: `${worker}-${seq}`,
    source: `/workers/${worker}`,
    type: `${EVENT_TYPE}${type}`,
    time: new Date(timestamp).toISOString(),
    ...(subject === undefined ? {} : { subject }),
    datacontenttype: 'application/json',
    category,
    principal,
    requestid: requestId,
    data,
  }
}

function subjectOf(data: WorkerEvent['data']): string | undefined {
  for (const [member, folder] of SUBJECTS) {
    const value = data[member]
    if (typeof value === 'string' && value !== '') return folder + value
  }
  return undefined
}

/** JSON Schema of a filter by type: names, or beginnings with `*`, with or without `svc.`. */
export const TYPE_PATTERN = '(?:svc\\.)?[a-z][a-z0-9_]{0,79}\\*?|\\*'

/** Whether a type is in a list such as `turn_*,run_ended`. An empty list selects all types. */
export function typeFilter(list: readonly string[]): (type: string) => boolean {
  const names = list.map(name => (name.startsWith(EVENT_TYPE) ? name.slice(EVENT_TYPE.length) : name))
  const exact = new Set(names)
  const beginnings = names.filter(name => name.endsWith('*')).map(name => name.slice(0, -1))
  return type => names.length === 0 || exact.has(type) || beginnings.some(beginning => type.startsWith(beginning))
}
