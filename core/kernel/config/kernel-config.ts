import type { Plugin } from '../src/plugin.ts'
import type { ConfigTree, PluginRef } from './config.ts'
import { type Schema, schema } from './schema.ts'

/** The sections of the configuration that the kernel owns. */
export interface KernelConfig {
  host: {
    setup_timeout_ms: number
    tap_timeout_ms: number
    slow_tap_ms: number
    close_timeout_ms: number
    accounting: boolean
    traces_per_second: number
  }
  log: { level: 'debug' | 'info' | 'warn' | 'error' | 'silent' }
}
const ms = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })
export const KERNEL_SCHEMA: Schema<KernelConfig> = schema<KernelConfig>({
  type: 'object',
  properties: {
    host: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        setup_timeout_ms: ms(10_000, 'Time limit of the setup of a plugin, in milliseconds.'),
        tap_timeout_ms: ms(5_000, 'Time limit of a tap of a hook, in milliseconds, unless the tap sets its own.'),
        slow_tap_ms: ms(
          500,
          'Milliseconds after which a tap of a hook is logged as slow. A tap with its own limit is slow when half of that has passed, if that is later.'
        ),
        close_timeout_ms: ms(10_000, 'Time limit of each undo function of a plugin at close, in milliseconds.'),
        traces_per_second: {
          type: 'integer',
          minimum: 1,
          maximum: 100_000,
          default: 20,
          description:
            'Traces that a worker records per second on average, if a plugin takes them. Of further requests it records only the request itself.',
        },
        accounting: {
          type: 'boolean',
          default: true,
          description:
            'Count calls, errors and durations of each plugin by hook. Without it a tap costs about half, and slow taps are not logged.',
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
          description: 'Lowest level that is logged.',
        },
      },
    },
  },
})

type DeepPartial<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T
type Nest<Path extends string, T> = Path extends `${infer Head}.${infer Rest}`
  ? { [K in Head]?: Nest<Rest, T> }
  : { [K in Path]?: T }
type ModulePlugin<M> = M extends { default: infer P } ? P : M
// A plugin without a section adds nothing to the type. `never` would make the whole configuration impossible.
type SectionOf<P> =
  P extends Plugin<infer S, infer C, string, string> ? ([S] extends [never] ? object : Nest<S, DeepPartial<C>>) : object
// With an accumulator the recursion is a tail call, which TypeScript allows for more than 50 plugins.
type SectionsOf<M extends readonly unknown[], All = object> = M extends readonly [infer First, ...infer Rest]
  ? SectionsOf<Rest, All & SectionOf<ModulePlugin<First>>>
  : All

type PathOf<P> = P extends Plugin<string, unknown, infer I, string> ? I : never
type EntryOf<P, Path> =
  P extends Plugin<string, infer C, infer I, infer T>
    ? [I] extends [never]
      ? never
      : I extends Path
        ? { type?: T; enabled?: boolean } & DeepPartial<C>
        : never
    : never
/** Sections of instances: each entry belongs to one of the plugins that share the section. */
type Instances<P> = { [Path in PathOf<P>]?: Record<string, EntryOf<P, Path>> }

/**
 * The configuration of a host with the plugins `M`: `defineConfig<[typeof import('svc-plugin-weather')]>({ tools: { weather: {
 * … } } })`.
 */
export type ConfigFor<M extends readonly unknown[]> = { plugins?: readonly PluginRef[] } & DeepPartial<KernelConfig> &
  SectionsOf<M> &
  Instances<ModulePlugin<M[number]>>

/** Types a `svc.config.ts` and returns its argument. */
export function defineConfig<M extends readonly unknown[] = []>(config: ConfigFor<M>): ConfigTree {
  return config as ConfigTree
}
