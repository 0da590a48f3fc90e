import { randomInt } from 'node:crypto'
import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'

/** @type {import('@svc/core').Schema<{ most: number }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: { most: { type: 'integer', minimum: 1, maximum: 1000, default: 20, description: 'Maximum number of dice.' } },
})

/** @type {(most: number) => import('@svc/core/contracts').Tool} */
const rollDice = most => ({
  description: 'Rolls dice and returns each number.',
  category: 'games',
  effects: ['read'],
  parameters: {
    type: 'object',
    properties: {
      dice: { type: 'integer', minimum: 1, maximum: most, default: 1, description: 'Number of dice.' },
      sides: { type: 'integer', minimum: 2, maximum: 1000, default: 6, description: 'Sides of each die.' },
    },
    additionalProperties: false,
  },
  result: {
    type: 'object',
    properties: { rolls: { type: 'array', items: { type: 'integer' } }, sum: { type: 'integer' } },
    required: ['rolls', 'sum'],
  },
  async call({ dice = 1, sides = 6 }, { signal }) {
    signal.throwIfAborted()
    const rolls = Array.from({ length: Number(dice) }, () => randomInt(Number(sides)) + 1)
    const sum = rolls.reduce((total, one) => total + one, 0)
    return { content: [{ type: 'text', text: `${rolls.join(' + ')} = ${sum}` }], structured: { rolls, sum } }
  },
})

export default definePlugin({
  section: 'tools.dice',
  config,
  setup(scope) {
    scope.add(Tools, 'roll_dice', rollDice(scope.config.most))
  },
})
