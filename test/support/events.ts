/** One frame of an event stream, as it was written. */
export interface SentEvent {
  /** The names of its lines in order: `id`, `event`, `data`. */
  readonly lines: readonly string[]
  readonly id: string
  readonly event: string
  readonly data: { readonly [field: string]: unknown }
  /** True for a comment: a heartbeat. */
  readonly comment: boolean
}

/** Reads frames chunk by chunk, stricter than a browser: every line has a name, every data is JSON. */
export interface EventReading {
  push(text: string): SentEvent[]
}

export function readEvents(): EventReading {
  let pending = ''
  return {
    push(text) {
      const blocks = (pending + text).split('\n\n')
      pending = blocks.pop() ?? ''
      return blocks.map(eventOf)
    },
  }
}

function eventOf(block: string): SentEvent {
  const lines = block.split('\n')
  const fields = new Map(lines.map(line => [line.split(':', 1)[0]!, line.replace(/^[^:]*: ?/, '')]))
  const data = fields.get('data')
  return {
    lines: lines.map(line => line.split(':', 1)[0]!),
    id: fields.get('id') ?? '',
    event: fields.get('event') ?? '',
    data: data === undefined ? {} : JSON.parse(data),
    comment: block.startsWith(':'),
  }
}

/** What is wrong with the form of a whole stream, by the rules that hold for every one. */
export function streamProblems(all: readonly SentEvent[]): string[] {
  const events = all.filter(event => !event.comment)
  const tokens = events.filter(event => event.event === 'token')
  return [
    ...events
      .filter(event => event.lines.join() !== 'id,event,data')
      .map(event => `an event has the lines ${event.lines.join()}`),
    ...events
      .filter(event => event.data.type !== event.event)
      .map(event => `the data of ${event.event} says type ${String(event.data.type)}`),
    ...events
      .filter((event, at) => at > 0 && !(Number(event.id) > Number(events[at - 1]!.id)))
      .map(event => `id ${event.id} does not grow`),
    ...tokens.filter((token, at) => token.data.index !== at).map(token => `a token has index ${String(token.data.index)}`),
    ...(events[0]?.event === 'start' ? [] : ['start is not first']),
    ...(events.at(-1)?.event === 'end' ? [] : ['end is not last']),
    ...(events.filter(event => event.event === 'start' || event.event === 'end').length === 2
      ? []
      : ['start and end are not there once']),
  ]
}

/** The text of a stream's tokens, joined. */
export const replyOf = (events: readonly SentEvent[]): string =>
  events
    .filter(event => event.event === 'token')
    .map(event => String(event.data.content))
    .join('')
