// The body schema of a chat for all servers here.
const text = { type: 'string', minLength: 1 }

export const turn = {
  type: 'object',
  properties: {
    message: text,
    provider: text,
    model: text,
    temperature: { type: 'number', minimum: 0, maximum: 1 },
    max_tokens: { type: 'integer', minimum: 1 },
    conversation_id: text,
    tools: { type: 'array', items: text },
  },
  required: ['message'],
  additionalProperties: false,
}
