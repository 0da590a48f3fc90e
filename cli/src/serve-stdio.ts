import type { Writable } from 'node:stream'
import { type LogOptions, type RunningHost, systemContext } from '@svc/core'
import { type Pipe, Pipes } from '@svc/core/contracts'
import { ensureHome } from '@svc/runtime'
import { pipeMissing } from './errors.ts'
import { startInnerHost } from './inner-host.ts'
import { openLog } from './log-output.ts'
import { printError } from './command/errors.ts'
import { takeOutput, untilSignal } from './command/protocol-streams.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings } from './settings.ts'

/** The protocol over standard input and output. */
const SPOKEN = 'mcp'

/**
 * Serves the client at standard input and output until it closes the input or a signal arrives; resolves with the exit code.
 * Only the protocol uses the standard output: the log and all other output go to the standard error stream.
 */
export async function serveStdio(options: ServeOptions): Promise<number> {
  const output = takeOutput()
  const log = openLog(process.stderr, options.json === true)
  try {
    using ending = untilSignal()
    await serveHere(options, output, log, ending.signal)
    return 0
  } catch (error) {
    printError(error)
    return 1
  } finally {
    await log.end()
  }
}

async function serveHere(options: ServeOptions, output: Writable, log: LogOptions, signal: AbortSignal): Promise<void> {
  const config = await findSettings(options)
  await using inner = await startInnerHost(config, ensureHome(), { destination: log.destination! }, { kept: ['mcp.server'] })
  await pipeOf(inner.host).serve(process.stdin, output, systemContext(signal, 'stdio'))
}

function pipeOf(host: RunningHost): Pipe {
  const pipe = host.slot(Pipes).get(SPOKEN)
  if (!pipe) throw pipeMissing(SPOKEN)
  return pipe
}
