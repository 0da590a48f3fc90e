/** One case of a kit: `for (const one of toolKit(open)) it(one.title, one.run)`. */
export interface KitCase {
  readonly title: string
  /** What its author did not give, where the case shows nothing for want of it. */
  readonly skipped?: string
  /** `this` is the runner's: a case that is skipped calls its `skip`, where it has one. */
  run(this: unknown): Promise<void>
}
