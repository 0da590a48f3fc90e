import type { ConfigTree, PluginRef } from './config.ts'
import type { Plugin } from '../src/plugin.ts'
import type { KernelConfig } from './kernel.ts'

type DeepPartial<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T
type Nest<Path extends string, T> = Path extends `${infer Head}.${infer Rest}`
  ? { [K in Head]?: Nest<Rest, T> }
  : { [K in Path]?: T }
type ModulePlugin<M> = M extends { default: infer P } ? P : M
// A plugin without a section says nothing of the configuration: `never` would make the whole of it impossible.
type SectionOf<P> =
  P extends Plugin<infer S, infer C, string, string> ? ([S] extends [never] ? object : Nest<S, DeepPartial<C>>) : object
type Sections<M extends readonly unknown[]> = M extends readonly [infer First, ...infer Rest]
  ? SectionOf<ModulePlugin<First>> & Sections<Rest>
  : object

type PathOf<P> = P extends Plugin<string, unknown, infer I, string> ? I : never
type EntryOf<P, Path> =
  P extends Plugin<string, infer C, infer I, infer T>
    ? [I] extends [never]
      ? never
      : I extends Path
        ? { type?: T; enabled?: boolean } & DeepPartial<C>
        : never
    : never
/** Sections of instances: each entry is one of the plugins that share the section. */
type Instances<P> = { [Path in PathOf<P>]?: Record<string, EntryOf<P, Path>> }

/** The configuration of a host with the plugins `M`: `defineConfig<[typeof import('svc-plugin-weather')]>({ tools: { weather: { … } } })`. */
export type ConfigFor<M extends readonly unknown[]> = { plugins?: readonly PluginRef[] } & DeepPartial<KernelConfig> &
  Sections<M> &
  Instances<ModulePlugin<M[number]>>

/** Types a `svc.config.ts`; returns what it is given. */
export function defineConfig<M extends readonly unknown[] = []>(config: ConfigFor<M>): ConfigTree {
  return config as ConfigTree
}
