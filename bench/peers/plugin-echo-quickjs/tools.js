// The same tool as of plugin-echo, for the JavaScript sandbox.
export const tools = {
  echo: {
    description: 'Answers what it is given.',
    category: 'text',
    effects: [],
    parameters: { type: 'object', properties: { text: { type: 'string' } } },
    call: ({ text }) => text,
  },
}
