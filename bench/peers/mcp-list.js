// Two hundred tools of typical size.
const COUNT = 200

const schema = {
  type: 'object',
  properties: {
    text: { type: 'string', description: 'What to say' },
    times: { type: 'integer', minimum: 1, maximum: 10, description: 'How often' },
    loud: { type: 'boolean', description: 'In capital letters' },
  },
  required: ['text'],
  additionalProperties: false,
}

const nameOf = at => (at === 0 ? 'echo' : `tool_${String(at).padStart(3, '0')}`)

/** The result of each tool. */
export const answer = args => ({ content: [{ type: 'text', text: String(args.text) }] })

/** The tools as the protocol lists them. */
export const listed = Array.from({ length: COUNT }, (_, at) => ({
  name: nameOf(at),
  title: nameOf(at),
  description: 'Says what it is given, the given number of times, in capital letters if asked.',
  inputSchema: schema,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
}))
