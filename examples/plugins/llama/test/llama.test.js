import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import { toRequest } from '../protocol.js'
import samples from './samples.js'

for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('sends a conversation with images, reasoning, tool calls and their results', () => {
  const tools = [{ name: 'weather', description: 'Returns the weather', parameters: { type: 'object' } }]
  const call = /** @type {const} */ ({ id: 'a', tool: 'weather', arguments: { city: 'Ulm' } })
  const image = /** @type {const} */ ({ type: 'image', data: 'aGk=', mimeType: 'image/png' })
  const request = toRequest({
    model: 'any',
    tools,
    maxTokens: 5,
    responseSchema: { type: 'object' },
    messages: [
      { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', parts: [{ type: 'text', text: 'How is it there?' }, image] },
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', text: 'Ulm?' },
          { type: 'tool_call', ...call },
        ],
      },
      {
        role: 'tool',
        parts: [{ type: 'tool_result', id: 'a', tool: 'weather', isError: true, content: [{ type: 'text', text: 'no data' }] }],
      },
    ],
  })
  deepEqual(JSON.parse(JSON.stringify(request)), {
    model: 'any',
    stream: true,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'How is it there?', images: ['aGk='] },
      {
        role: 'assistant',
        content: '',
        thinking: 'Ulm?',
        tool_calls: [{ function: { name: 'weather', arguments: { city: 'Ulm' } } }],
      },
      { role: 'tool', tool_name: 'weather', content: 'Error: no data' },
    ],
    tools: [{ type: 'function', function: tools[0] }],
    format: { type: 'object' },
    options: { num_predict: 5 },
  })
})

test('sends no tools when none may be called', () => {
  const tools = [{ name: 'weather', description: 'Returns the weather', parameters: { type: 'object' } }]
  deepEqual(Object.keys(JSON.parse(JSON.stringify(toRequest({ model: 'any', tools, toolChoice: 'none', messages: [] })))), [
    'model',
    'stream',
    'messages',
    'options',
  ])
})
