import { randomInt } from 'node:crypto'
import type { Tool } from '@svc/core/contracts'

export interface DiceConfig {
  /** Maximum number of dice. */
  most: number
}

/** Rolls dice: `{ sides: 6, count: 2 }` gives two numbers from 1 to 6 and their sum. */
export function createRollDice({ most }: DiceConfig): Tool {
  return {
    description: 'Rolls dice and returns each number and the sum.',
    category: 'games',
    effects: [],
    parameters: {
      type: 'object',
      properties: {
        sides: { type: 'integer', minimum: 2, maximum: 1000, default: 6, description: 'Sides of each die' },
        count: { type: 'integer', minimum: 1, maximum: most, default: 1, description: 'Number of dice' },
      },
      additionalProperties: false,
    },
    result: {
      type: 'object',
      properties: { rolls: { type: 'array', items: { type: 'integer' } }, sum: { type: 'integer' } },
      required: ['rolls', 'sum'],
    },
    async call({ sides = 6, count = 1 }, { signal }) {
      signal.throwIfAborted()
      const rolls = Array.from({ length: Number(count) }, () => randomInt(1, Number(sides) + 1))
      const sum = rolls.reduce((all, roll) => all + roll, 0)
      return { content: [{ type: 'text', text: `${rolls.join(' + ')} = ${sum}` }], structured: { rolls, sum } }
    },
  }
}
