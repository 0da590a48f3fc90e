import { type Answerer, type FakeUpstream, openUpstream } from '@svc/testing'

interface Message {
  readonly role: string
  readonly content: unknown
}

const SUMMARY = `The order **A-1042** of Mara Lindqvist was delivered four days late.

| Order | A-1042 |
|---|---|
| Total | 129.50 € |
| Promised | 2 days |
| Delivered | 6 days |

I suggest a refund of **10 %** (12.95 €). Our rule for late orders:

1. one to three days: an apology
2. four days and more: 10 %
3. more than ten days: 25 %`

/** What it says, by a word of the last message of the person. */
const REPLIES: readonly (readonly [word: RegExp, reply: string])[] = [
  [/Dear Mara/, 'The letter is short and honest. Name the number of the order in its first sentence.'],
  [/subject/i, 'Sorry that we kept you waiting'],
  [
    /reply|answer|letter/i,
    'Dear Mara,\n\nyour order came four days late. We are sorry, and refund 12.95 €.\n\nYour team of the shop',
  ],
  [/refund it/i, 'Done. 12.95 € go back to the card of Mara Lindqvist, and the note says that we are sorry.'],
  [/late/i, SUMMARY],
  [
    /return/i,
    'You can return an item within **30 days**. The label is in the parcel; the refund follows within three working days.',
  ],
]
const TOOLS: readonly (readonly [word: RegExp, name: string, args: object])[] = [
  [/refund it/i, 'refund_order', { order: 'A-1042', amount: 12.95, reason: 'late', note: 'Sorry for the wait!' }],
  [/late/i, 'find_order', { order: 'A-1042' }],
]

const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`

const textOf = ({ content }: Message) => (typeof content === 'string' ? content : JSON.stringify(content))

/** Streams its reply in pieces. The first answer to a message about an order calls a tool. */
const answer: Answerer = async ({ method, body }, reply) => {
  if (method === 'GET') return reply.json(200, { object: 'list', data: [] })
  const { messages, tools = [] } = body as { messages: Message[]; tools?: { function: { name: string } }[] }
  const asked = textOf(messages.findLast(({ role }) => role === 'user') ?? { role: 'user', content: '' })
  const call = messages.at(-1)?.role === 'tool' ? undefined : TOOLS.find(([word]) => word.test(asked))
  reply.begin({ 'content-type': 'text/event-stream' })
  if (call && tools.some(tool => tool.function.name === call[1])) {
    const fn = { name: call[1], arguments: JSON.stringify(call[2]) }
    await reply.write(chunk({ role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: fn }] }))
    await reply.write(chunk({}, { finish_reason: 'tool_calls' }))
  } else {
    const text = REPLIES.find(([word]) => word.test(asked))?.[1] ?? 'We are open from 8 to 18 o’clock, and always online.'
    for (const piece of text.match(/\s*\S+/g) ?? []) await reply.write(chunk({ content: piece }))
    await reply.write(chunk({}, { finish_reason: 'stop' }))
  }
  const usage = { prompt_tokens: 412 + messages.length * 96, completion_tokens: 118, total_tokens: 530 }
  reply.end(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`)
}

/** A model server of the chat completions API whose replies are always the same. */
export const openShopModel = (): Promise<FakeUpstream> => openUpstream(answer)
