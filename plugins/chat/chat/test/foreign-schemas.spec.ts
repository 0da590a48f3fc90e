import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { JsonSchema } from '@svc/core'
import { expect } from 'chai'
import { answerByForms } from '../src/tool-dialog.ts'
import { formOf } from '../src/turn.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const newSchema = (): JsonSchema & object => ({ type: 'object', properties: { [`a${Math.random()}`]: { type: 'string' } } })

/** Uses a schema and returns a reference that does not keep it. */
async function used(use: (schema: JsonSchema & object) => Promise<unknown>): Promise<WeakRef<object>> {
  const schema = newSchema()
  await use(schema)
  return new WeakRef(schema)
}

/** Whether the process can forget what it points to. */
async function isForgotten(left: WeakRef<object>): Promise<boolean> {
  for (let i = 0; i < 20; i++) {
    await setImmediate()
    collect()
    if (left.deref() === undefined) return true
  }
  return false
}

describe('schemas that come with a request', () => {
  it('are forgotten after the turn: a client could fill the memory with them', async () => {
    expect(await isForgotten(await used(async schema => (await formOf(schema)).check({}, 'all')))).to.equal(true)
  })

  it('are forgotten after the answer, if an MCP server asked with them', async () => {
    const asks = (requestedSchema: object) => {
      const requests = { a: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema } } }
      return answerByForms({ requests } as never, {}, async (_args, _text, form) => {
        expect(form?.check({ allow: true, content: {} })).to.deep.equal([])
        return { allow: true }
      })
    }
    expect(await isForgotten(await used(asks))).to.equal(true)
  })
})
