import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Workflows that ask, fail, wait and branch. */
export const FLOWS = {
  ask: `name: ask
description: Asks a person before it goes on
nodes:
  prepare: { type: transform, value: ready, next: may }
  may:
    type: human
    message: May the release go out?
    branches: { approved: publish, rejected: end }
  publish: { type: transform, value: published }
`,
  form: `name: form
nodes:
  who:
    type: human
    kind: input
    message: Who gets the report?
    schema:
      type: object
      properties:
        name: { type: string, title: Name }
        copies: { type: integer, minimum: 1, default: 1 }
        urgent: { type: boolean }
      required: [name]
    next: done
  done: { type: transform, value: "\${{ nodes.who.answer.name }}" }
`,
  steps: `name: steps
description: Greets, checks and finishes
inputs: { type: object, properties: { who: { type: string, title: Who }, fails: { type: boolean } } }
nodes:
  greet: { type: transform, value: "hello \${{ input.who }}", next: check }
  check: { type: condition, if: input.fails, branches: { true: broken, false: done } }
  broken: { type: transform, value: "\${{ input.none.such }}", next: done }
  done: { type: transform, value: "\${{ nodes.greet }}!" }
`,
  waits: `name: waits
signals: { go: {} }
queries: { seen: { value: "\${{ state.completed_nodes }}", description: What is done } }
nodes:
  first: { type: transform, value: 1, next: hold }
  hold: { type: wait, event: go, next: last }
  last: { type: transform, value: "\${{ nodes.hold }}" }
`,
} as const

export async function writeFlows(home: string, flows: Readonly<Record<string, string>> = FLOWS): Promise<void> {
  await mkdir(join(home, 'workflows'), { recursive: true })
  for (const [name, text] of Object.entries(flows)) await writeFile(join(home, 'workflows', `${name}.yaml`), text)
}
