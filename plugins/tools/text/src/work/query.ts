import { refusal } from '@svc/worker-pool/child'
import { messageOf, notTooLong } from './bounds.ts'

/** Answers the result as JSON; `undefined` where nothing matches. */
export async function queryJson({ json, query }: { json: string; query: string }): Promise<string | undefined> {
  const { default: jsonata } = await import('jsonata')
  const data = parsed(json)
  const result: unknown = await asked(async () => jsonata(query).evaluate(data))
  const text = JSON.stringify(result, plain)
  if (text !== undefined) notTooLong(text.length, 'ask for less of it')
  return text
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw refusal('JSON_INVALID', `"json" is no JSON: ${messageOf(error)}`, { hint: 'give the JSON whole, as text' })
  }
}

async function asked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { position } = error as { position?: number }
    const where = position === undefined ? '' : ` (at ${position})`
    throw refusal('QUERY_INVALID', `the query fails: ${messageOf(error)}${where}`, { hint: 'fix the JSONata expression' })
  }
}

const plain = (_: string, value: unknown) => {
  if (typeof value === 'function' || (value !== null && typeof value === 'object' && '_jsonata_lambda' in value))
    throw refusal('QUERY_INVALID', 'the query answers a function', { hint: 'call the function' })
  return value
}
