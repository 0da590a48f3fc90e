import { schema } from '@svc/core'
import type { Tool } from '@svc/core/contracts'

//js: /** @typedef {{ most: number }} SampleWordConfig */
/** The section `tools.sample_word` of the configuration. */
export interface SampleWordConfig {
  most: number
}

//js: /** @type {import('@svc/core').Schema<SampleWordConfig>} */
export const CONFIG = schema<SampleWordConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    most: { type: 'integer', minimum: 1, default: 1000, description: 'Maximum number of characters.' },
  },
})

/** svc checks the arguments against `parameters` before `call`. Write error texts for the model, which reads them. */
//js: /** @type {(config: SampleWordConfig) => import('@svc/core/contracts').Tool} */
export const createSampleWord = ({ most }: SampleWordConfig): Tool => ({
  description: 'Reverses a text, character by character.',
  category: 'text',
  effects: ['read'],
  parameters: {
    type: 'object',
    properties: { text: { type: 'string', description: 'The text to reverse.' } },
    required: ['text'],
    additionalProperties: false,
  },
  result: { type: 'object', properties: { reversed: { type: 'string' } }, required: ['reversed'] },
  async call({ text }, { signal }) {
    signal.throwIfAborted()
    const characters = [...String(text)]
    if (characters.length > most) throw new Error(`The text has ${characters.length} characters, more than ${most}: shorten it.`)
    const reversed = characters.reverse().join('')
    return { content: [{ type: 'text', text: reversed }], structured: { reversed } }
  },
})
