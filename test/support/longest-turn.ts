/** The longest turn of the event loop while `work` runs, in milliseconds of this thread's CPU time. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let last = process.threadCpuUsage();
  let longest = 0;
  const end = () => {
    const used = process.threadCpuUsage();
    longest = Math.max(longest, used.user + used.system - last.user - last.system);
    last = used;
  };
  let watching = true;
  const watch = () => {
    end();
    if (watching) setImmediate(watch);
  };
  setImmediate(watch);
  await work();
  end();
  watching = false;
  return longest / 1_000;
}
