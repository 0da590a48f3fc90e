import type { Json, ToolStep } from '@svc/core/contracts'
import { deeper } from '@svc/mcp-protocol'
import { DEPTH } from './result.ts'

type LogStep = Extract<ToolStep, { type: 'log' }>

const LEVELS = new Set<unknown>(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])

/** What a server logs, as a step of a call; `undefined` where it is no log message. */
export function readLog(params: unknown): LogStep | undefined {
  const { level, data, logger } = (params ?? {}) as Record<string, unknown>
  if (!LEVELS.has(level) || data === undefined || deeper(data, DEPTH)) return undefined
  return {
    type: 'log',
    level: level as LogStep['level'],
    data: data as Json,
    ...(typeof logger === 'string' && { logger }),
  }
}
