import assert from 'node:assert/strict'
import { messageOf } from '@svc/core'
import type { Json, Tool } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, frozen, outcome, skipped } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { fitting, soundEnd } from './made-up-calls.ts'
import { openNow } from './open-now.ts'
import type { Thing } from './plugin-host.ts'
import { assertReadable, checkResult, describeTool, shown, type ToolSubject } from './tool-kit.ts'

type Arguments = { readonly [name: string]: Json | undefined }
const CALLS = 'ends made-up calls with a result or in words, changes no argument and leaves nothing open'
const ABORTED = 'does not begin a made-up call that is aborted already'

/** What can be asked of a tool whose author gives no samples. */
export function toolCases({ name, seen, options }: Thing<Tool>, open: () => Promise<ToolSubject>): KitCase[] {
  const make = caseMaker(open)
  const samples = options.tools?.[name]
  const made = ({ tool }: ToolSubject) => fitting(tool.parameters, options) as Arguments[]
  const none = { good: [{ args: {} }], bad: [] }
  const described = samples ? [] : describeTool(make, none).filter(({ title }) => !title.includes('gives as good'))
  if (!samples?.madeUp && seen.effects.some(effect => effect !== 'read'))
    return [
      ...described,
      ...[CALLS, ABORTED].map(title => skipped(title, `its effects are ${seen.effects.join(', ')}: \`madeUp\` in its samples`)),
    ]
  return [
    ...described,
    make(CALLS, async subject => callAll(subject, made(subject))),
    make(ABORTED, async subject => {
      const [args = {}] = made(subject)
      const { use, abort } = abortable()
      abort()
      const { failed } = await atOnce(outcome(subject.tool.call(frozen(args), use)), 'the end of an aborted call')
      assert.ok(failed, 'it answered a call that was aborted before: begin with signal.throwIfAborted()')
    }),
  ]
}

async function callAll({ tool }: ToolSubject, all: readonly Arguments[]): Promise<void> {
  assert.ok(all.length > 0, 'no arguments can be made up that fit its schema: give samples of it')
  const [first = {}] = all
  // what it opens once and for all is no leak
  await soundEnd(tool.call(frozen(first), abortable().use), shown(first))
  const before = openNow()
  for (const args of all) {
    const { value, error } = await soundEnd(tool.call(frozen(args), abortable().use), shown(args))
    if (value) checkResult(tool, value, shown(args))
    else assertReadable(messageOf(error))
  }
  await becomes('closing what was opened', () => openNow() <= before)
}
