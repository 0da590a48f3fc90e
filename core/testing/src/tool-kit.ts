import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '@svc/core'
import type { Json, Tool, ToolResult } from '@svc/core/contracts'
import {
  abortable,
  assertPlain,
  atOnce,
  caseMaker,
  compileSchema,
  leavesNothingOpen,
  frozen,
  type KitCase,
  type KitSubject,
  outcome,
  skipped,
} from './kit-case.ts'

type Arguments = { readonly [name: string]: Json | undefined }

/** The title of the case that needs good samples. */
export const GOOD_ARGUMENTS = 'accepts the arguments of the good samples'

/** A tool to test. It can run in another process. */
export interface ToolSubject extends KitSubject {
  readonly tool: Tool
  readonly name: string
}

/** Sample arguments of a tool. */
export interface ToolSamples {
  /** Calls that succeed. `expect` checks the result. */
  readonly good: readonly { readonly args: Arguments; expect?(result: ToolResult): void }[]
  /** Arguments that its schema rejects. Those with a message pass the schema, and the call fails with a matching message. */
  readonly bad: readonly { readonly args: Arguments; readonly message?: RegExp }[]
  /** A call that runs until it is aborted. */
  readonly slow?: { readonly args: Arguments }
  /** Number of concurrent calls. Default 50. */
  readonly concurrent?: number
}

const EFFECTS = ['read', 'write', 'execute', 'network']
const SHORTEST_DESCRIPTION = 10

/** Cases for every tool: `for (const one of toolKit(open, samples)) it(one.title, one.run)`. Each case opens its own tool. */
export function toolKit(open: () => ToolSubject | Promise<ToolSubject>, samples: ToolSamples): KitCase[] {
  const make = caseMaker(open)
  return [...describeTool(make, samples), ...calling(make, samples), ...leaving(make, samples)]
}

type Make = ReturnType<typeof caseMaker<ToolSubject>>

/** Cases without a call. */
export function describeTool(make: Make, { good }: ToolSamples): KitCase[] {
  return [
    make('has a name that every model accepts, and a description', async ({ tool, name }) => {
      assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
      assert.ok(
        tool.description.trim().length >= SHORTEST_DESCRIPTION,
        'the description is too short for a model that selects tools'
      )
      assert.match(tool.category, /^[a-z][a-z0-9_-]*$/)
      const { call: _call, run: _run, ...data } = tool
      assertPlain(data, 'tool')
    }),
    make('declares each of its effects once: read, write, execute or network', async ({ tool }) => {
      for (const effect of tool.effects) assert.ok(EFFECTS.includes(effect), `"${effect}" is none of ${EFFECTS.join(', ')}`)
      assert.equal(new Set(tool.effects).size, tool.effects.length, 'an effect is declared twice')
      assert.ok(tool.timeoutMs === undefined || (Number.isInteger(tool.timeoutMs) && tool.timeoutMs > 0), 'timeoutMs')
    }),
    make('has an object schema that describes each argument', async ({ tool }) => {
      compileSchema(tool.parameters, 'parameters')
      const schema = tool.parameters as { type?: unknown; properties?: Record<string, unknown> }
      assert.equal(schema.type, 'object', 'parameters must be the schema of an object')
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        const { description } = property as { description?: unknown }
        assert.ok(typeof description === 'string' && description !== '', `the parameter ${name} has no description`)
      }
      if (tool.result !== undefined) compileSchema(tool.result, 'result')
    }),
    make(GOOD_ARGUMENTS, async ({ tool }) => {
      assert.ok(good.length > 0, 'pass at least one good call to the kit')
      const check = compileSchema(tool.parameters, 'parameters')
      for (const { args } of good) assert.ok(check(structuredClone(args)), `${shown(args)}: ${JSON.stringify(check.errors)}`)
    }),
  ]
}

function calling(make: Make, { good, bad, concurrent = 50 }: ToolSamples): KitCase[] {
  return [
    make('answers good calls with plain content that matches its result schema', async ({ tool }) => {
      for (const sample of good) {
        const result = await tool.call(frozen(sample.args), abortable().ctx)
        checkResult(tool, result, shown(sample.args))
        assert.notEqual(result.isError, true, `${shown(sample.args)} is said to have failed: ${textOf(result)}`)
        sample.expect?.(result)
      }
    }),
    make('streams the same result after its steps, if it implements run', async ({ tool }) => {
      if (!tool.run) return
      for (const sample of good) {
        const steps = await Array.fromAsync(tool.run(frozen(sample.args), { can: [] }, abortable().ctx))
        const last = steps.pop()
        assert.ok(
          steps.every(({ type }) => type === 'progress' || type === 'log'),
          'it continues after its last item'
        )
        assert.ok(last?.type === 'result', `${shown(sample.args)} ends without a result`)
        checkResult(tool, last.result, shown(sample.args))
        sample.expect?.(last.result)
      }
    }),
    make('has a schema that rejects the bad calls, except those with a message', async ({ tool }) => {
      const check = compileSchema(tool.parameters, 'parameters')
      for (const { args, message } of bad) {
        const [fits, call] = [check(structuredClone(args)), shown(args)]
        assert.ok(fits || !message, `${call} breaks the schema, so the tool is not called: leave out its \`message\``)
        assert.ok(!fits || message, `${call} fits the schema: say in \`message\` in which words the tool refuses it`)
      }
    }),
    make('rejects bad calls with a readable message', async ({ tool }) => {
      for (const { args, message } of bad) {
        const work = tool.call(frozen(args), abortable().ctx)
        // The caller validates first, but a call without that must also end.
        const { value, error, failed } = await atOnce(outcome(work), `the end of ${shown(args)}`)
        if (!message) continue
        if (value) checkResult(tool, value, shown(args))
        assertWords(failed ? messageOf(error) : value?.isError ? textOf(value) : '', args, message)
      }
    }),
    make('does not change its arguments', async ({ tool }) => {
      for (const { args } of good) {
        const given = structuredClone(args)
        await tool.call(given, abortable().ctx)
        assert.ok(isDeepStrictEqual(given, structuredClone(args)), `it changed ${shown(args)}`)
      }
    }),
    make(`runs ${concurrent} concurrent calls and leaves nothing open`, async subject => {
      const { tool } = subject
      const args = frozen(good[0]!.args)
      await tool.call(args, abortable().ctx)
      await leavesNothingOpen(subject, async () => {
        const results = await Promise.all(Array.from({ length: concurrent }, () => tool.call(args, abortable().ctx)))
        for (const result of results) checkResult(tool, result, shown(args))
        for (const sample of bad) await outcome(tool.call(frozen(sample.args), abortable().ctx))
      })
    }),
  ]
}

function assertWords(words: string, args: Arguments, message: RegExp): void {
  assert.ok(words.trim() !== '', `${shown(args)} was not refused`)
  assertReadable(words)
  assert.match(words, message)
}

/** Texts for a model or a person. */
export function assertReadable(words: string): void {
  assert.ok(words.trim() !== '', 'it says nothing')
  assert.doesNotMatch(words, /\[object |^undefined$|\n\s+at .*:\d+:\d+/, `not a readable message: ${words}`)
}

function leaving(make: Make, { good, slow }: ToolSamples): KitCase[] {
  const running = 'ends when it is aborted while it runs'
  return [
    make('does not start a call whose signal is already aborted', async ({ tool }) => {
      const { ctx, abort } = abortable()
      abort()
      const { failed } = await atOnce(outcome(tool.call(frozen(good[0]!.args), ctx)), 'the end of an aborted call')
      assert.ok(failed, 'it answered a call that was already aborted')
    }),
    slow
      ? make(running, async ({ tool }) => {
          const { ctx, abort } = abortable()
          const ended = outcome(tool.call(frozen(slow.args), ctx))
          setImmediate(abort)
          const { failed } = await atOnce(ended, 'the end of an aborted call')
          assert.ok(failed, 'it answered although it was aborted')
        })
      : skipped(running, '`slow`'),
  ]
}

export function checkResult(tool: Tool, result: ToolResult, call: string): void {
  assertPlain(result, 'result')
  assert.ok(Array.isArray(result.content), `${call}: the result has no content`)
  for (const part of result.content) assert.equal(typeof part.type, 'string', `${call}: a content part without type`)
  if (result.isError || (tool.result === undefined && result.structured === undefined)) return
  if (tool.result === undefined)
    assert.fail(`${call} is answered with \`structured\`, and the tool has no schema \`result\` of it`)
  const check = compileSchema(tool.result, 'result')
  assert.ok(check(structuredClone(result.structured)), `${call}: structured ${JSON.stringify(check.errors)}`)
}

const textOf = (result: ToolResult): string => result.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')

export function shown(args: Arguments): string {
  const text = JSON.stringify(args)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
