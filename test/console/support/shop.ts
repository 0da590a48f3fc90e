import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import { JobKinds, Tools } from '@svc/core/contracts'

const ORDERS: Readonly<Record<string, object>> = {
  'A-1042': { id: 'A-1042', customer: 'Mara Lindqvist', total: 129.5, state: 'delivered', days_late: 4 },
  'A-1057': { id: 'A-1057', customer: 'Jonas Weber', total: 48, state: 'shipped', days_late: 0 },
}
const ORDER = { type: 'string', description: 'The number of the order, such as A-1042.', pattern: '^A-[0-9]{4}$' } as const
const TEXT = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value, undefined, 2) }] })

/** The tools and jobs of a shop: what the pictures of the console show. */
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'find_order', {
      description: 'Finds an order by its number, with its customer, total and delivery.',
      category: 'web',
      effects: ['read'],
      parameters: { type: 'object', properties: { order: ORDER }, required: ['order'], additionalProperties: false },
      async call({ order }) {
        const found = typeof order === 'string' ? ORDERS[order] : undefined
        if (!found) throw new Error('There is no order with this number: check it.')
        return TEXT(found)
      },
    })
    scope.add(Tools, 'refund_order', {
      description: 'Refunds a part of an order to the payment method of the customer.',
      category: 'web',
      effects: ['read'],
      parameters: {
        type: 'object',
        properties: {
          order: ORDER,
          amount: { type: 'number', title: 'Amount', description: 'In euros.', minimum: 0.01 },
          reason: { enum: ['late', 'damaged', 'wrong item'], title: 'Reason', default: 'late' },
          note: { type: 'string', title: 'Note', description: 'The customer reads it.' },
        },
        required: ['order', 'amount', 'reason'],
        additionalProperties: false,
      },
      call: async ({ order, amount }) => TEXT({ order, refunded: amount }),
    })
    scope.add(JobKinds, 'invoices.send', {
      description: 'Sends the invoices of a day',
      input: { type: 'object', properties: { day: { type: 'string' } }, required: ['day'], additionalProperties: false },
      async *run({ input }) {
        yield { type: 'log', level: 'info', message: `sends the invoices of ${String((input as { day: string }).day)}` }
        yield { type: 'progress', progress: 48, total: 48 }
        yield { type: 'result', value: { sent: 48 } }
      },
    })
    scope.add(JobKinds, 'search.index', {
      description: 'Builds the search index of the products anew',
      async *run(_task, { signal }) {
        yield { type: 'progress', progress: 1_200, total: 4_000 }
        await sleep(3_600_000, undefined, { signal })
        yield { type: 'result', value: null }
      },
    })
    scope.add(JobKinds, 'stock.import', {
      description: 'Imports the stock of a supplier',
      attempts: 1,
      async *run() {
        yield { type: 'log', level: 'warning', message: 'the file has 3 lines without a quantity' }
        throw new Error('the supplier did not answer')
      },
    })
    scope.log.warn({ supplier: 'nordwind' }, 'the stock of nordwind is two days old')
  },
})
