import type { Answer } from '../../exchange.ts'
import { any, exchange, field, get, invalid, list, matching, noConversation, ok, post, say } from '../../exchange.ts'

const PATH = '/api/v1/conversations'
const exported = (answer: Answer | undefined, format?: string) =>
  get(`${PATH}/${field(answer, 'conversation_id')}/export${format === undefined ? '' : `?format=${format}`}`)
const file = (type: RegExp, ending: string, text: RegExp) => ({
  status: 200,
  headers: {
    'content-type': matching(type),
    'content-disposition': matching(new RegExp(`^attachment; filename="conv_.*${ending}"$`)),
  },
  text: matching(text),
})
const HEAD = '{"type":"conversation","version":1}\n'

export default exchange({
  rule: 'exports a conversation in three formats, and imports two of them as new conversations of the caller, or refuses the line',
  source: 'issue 26, 2',
  steps: [
    { request: say({ message: 'one' }), expect: ok() },
    {
      request: ([first]) => exported(first),
      expect: file(/^application\/x-ndjson/, '\\.jsonl', /^\{"type":"conversation","version":1,/),
    },
    {
      request: ([first]) => exported(first, 'chat_completions'),
      expect: file(/^application\/x-ndjson/, '\\.chat\\.jsonl', /^\{"messages":\[/),
    },
    { request: ([first]) => exported(first, 'markdown'), expect: file(/^text\/markdown/, '\\.md', /^# one\n/) },
    { request: ([first]) => exported(first, 'pdf'), expect: invalid('format') },
    { request: get(`${PATH}/c/export`), expect: noConversation('c') },
    ...[1, 2].map(at => ({
      request: (answers: readonly Answer[]) =>
        post(`${PATH}/import`, {
          content: answers[at]!.text,
          format: at === 1 ? 'jsonl' : 'chat_completions',
          labels: ['imported'],
        }),
      expect: {
        status: 201,
        body: { conversations: list({ conversation_id: any('text'), message_count: 2, labels: ['imported'], title: 'one' }, 1) },
      },
    })),
    {
      request: post(`${PATH}/import`, { content: `${HEAD}{"type":"turn","messages":[{"role":"system","parts":[]}]}` }),
      expect: invalid('content', { line: 2 }),
    },
    { request: post(`${PATH}/import`, { content: '' }), expect: invalid('content', { line: 1 }) },
    { request: post(`${PATH}/import`, { content: HEAD, format: 'markdown' }), expect: invalid('format') },
    { request: post(`${PATH}/import`, { content: HEAD, owner: 'root' }), expect: invalid('owner') },
  ],
})
