import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textTool, type Work } from './text-tool.ts'

/** Creates `calculate`, which evaluates arithmetic. */
export function createCalculate(work: Work): Tool {
  return textTool<{ expression: string }>({
    description:
      'Evaluates arithmetic: + - * / % (remainder) ^ ! ( ), comparisons, PI, E, and abs ceil floor round roundTo(x, digits) trunc sign sqrt cbrt exp ln log10 log2 min max hypot gcd lcm sin cos tan asin acos atan atan2 sinh cosh tanh (radians). About 15 digits.',
    parameters: objectOf({
      expression: { type: 'string', minLength: 1, maxLength: 2000, description: 'such as (1 + 2) * 3 ^ 2 or sqrt(2) / 2' },
    }),
    result: objectOf(
      {
        result: { type: ['number', 'boolean'] },
        note: { type: 'string', description: 'note on an inexact result' },
      },
      ['note']
    ),
    async work(args, ctx) {
      const data = await work.run('calculate', args, ctx)
      return { data, text: data.note === undefined ? String(data.result) : `${data.result}\n[${data.note}]` }
    },
  })
}
