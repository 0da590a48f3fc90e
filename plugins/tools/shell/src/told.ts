import type { RunResult } from '@svc/worker-pool/processes'
import type { Released, ToolResult } from '@svc/core/contracts'
import { answerOf } from '@svc/plugin-kit'

type Stopped = 'memory' | 'processes' | 'output'

const WORDS: Readonly<Record<Stopped, string>> = {
  memory: '[It needed more memory than it may have, and was ended.]',
  processes: '[It wanted more processes than it may have.]',
  output: '[It did not stop writing, and was ended.]',
}

/** A command that ended, as it is told. That it failed is no failure of the tool: the caller reads its words and goes on. */
export function toldResult(ran: RunResult, met: Released): ToolResult {
  const { code, signal, stdout, stderr, durationMs } = ran
  const stopped = stoppedBy(ran, met)
  const lines = [
    ...(stdout.text === '' ? [] : [stdout.text.trimEnd()]),
    ...(stderr.text === '' ? [] : ['[standard error]', stderr.text.trimEnd()]),
    ...(stopped === undefined ? [] : [WORDS[stopped]]),
    code === null ? `[ended by ${signal}]` : `[exit code ${code}]`,
  ]
  return answerOf(lines, {
    exit_code: code,
    signal,
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: stdout.truncated || stderr.truncated,
    duration_ms: durationMs,
    ...(stopped === undefined ? {} : { stopped }),
  })
}

function stoppedBy({ stopped }: RunResult, { outOfMemory, outOfPids }: Released): Stopped | undefined {
  if (stopped === 'flood') return 'output'
  return outOfMemory ? 'memory' : outOfPids ? 'processes' : undefined
}
