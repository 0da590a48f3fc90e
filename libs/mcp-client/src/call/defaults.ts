import type { Json } from '@svc/core/contracts'

type Fact = { readonly [key: string]: Json | undefined }
const isObject = (value: unknown): value is Fact => typeof value === 'object' && value !== null && !Array.isArray(value)

/** An accepted form, with the defaults that it declares in the places left empty. */
export function withDefaults(params: Fact | undefined, answer: Json | undefined): Json | undefined {
  const properties = isObject(params?.['requestedSchema']) ? params['requestedSchema']['properties'] : undefined
  if (!isObject(answer) || answer['action'] !== 'accept' || !isObject(properties)) return answer
  const content = isObject(answer['content']) ? answer['content'] : {}
  const defaults = Object.entries(properties).flatMap(([name, one]) =>
    isObject(one) && one['default'] !== undefined ? [[name, one['default']] as const] : []
  )
  return { ...answer, content: { ...Object.fromEntries(defaults), ...content } }
}
