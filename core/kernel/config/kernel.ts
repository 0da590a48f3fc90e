import { schema } from './schema.ts'

/** The parts of the configuration that the kernel itself owns. */
export interface KernelConfig {
  host: { setup_timeout_ms: number; tap_timeout_ms: number; slow_tap_ms: number; close_timeout_ms: number; accounting: boolean }
  log: { level: 'debug' | 'info' | 'warn' | 'error' | 'silent' }
}
const ms = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })
export const KERNEL_SCHEMA = schema<KernelConfig>({
  type: 'object',
  properties: {
    host: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        setup_timeout_ms: ms(10_000, 'Milliseconds that the setup of a plugin may take.'),
        tap_timeout_ms: ms(5_000, 'Milliseconds that a tap of a hook may take, unless it asked for a limit of its own.'),
        slow_tap_ms: ms(
          500,
          'Milliseconds after which a tap of a hook is named in the log as slow; one with a limit of its own, when half of that is over.'
        ),
        close_timeout_ms: ms(10_000, 'Milliseconds that each undo of a plugin may take at close.'),
        accounting: {
          type: 'boolean',
          default: true,
          description:
            'Whether calls, errors and times of each plugin are counted, hook by hook. Without it a tap costs about half, and no slow one is named.',
        },
      },
    },
    log: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        level: {
          enum: ['debug', 'info', 'warn', 'error', 'silent'],
          default: 'info',
          description: 'The least level that is written to the log.',
        },
      },
    },
  },
})
