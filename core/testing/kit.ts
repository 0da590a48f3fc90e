/** One case of a kit: `for (const one of toolKit(open)) it(one.title, one.run)`. */
export interface KitCase {
  readonly title: string
  run(): Promise<void>
}
